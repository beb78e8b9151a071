package events

import "errors"

// What stands under a mailbox's record says whether it may be used. A node that
// is to run the seat reads nothing else: how a retirement goes on stands with the
// saga. MailboxRegistered makes it usable, at first and again.

// MailboxRetiring: a retirement has marked the mailbox and begins to delete. Its
// append is checked against the company's newest revision, so none that has the
// seat came before it (R5, R8). It stands in one atomic batch with the mark.
type MailboxRetiring struct {
	Handle  string `json:"-"`
	AgentID string `json:"agent_id"`
	Saga    string `json:"saga"`
	Kept
}

// MailboxRetired: the record ends. The cursors stay where the mark was, and the
// seat's epochs go on in its lease family, so a mailbox registered again begins
// empty, behind everything that was.
type MailboxRetired struct {
	Handle  string `json:"-"`
	AgentID string `json:"agent_id"`
	Saga    string `json:"saga"`
	Kept
}

// CursorRetired: the mailbox was retired up to its mark; what stands at or below
// that is settled, by nobody's turn.
type CursorRetired struct{ CursorBody }

func (MailboxRetiring) event() {}
func (MailboxRetired) event()  {}
func (CursorRetired) event()   {}

func (e MailboxRetiring) validate() error {
	return errors.Join(present("agent_id", e.AgentID), present("saga", e.Saga))
}

func (e MailboxRetired) validate() error {
	return errors.Join(present("agent_id", e.AgentID), present("saga", e.Saga))
}

func (e CursorRetired) validate() error {
	return errors.Join(tenure(e.Epoch, e.Owner), e.ordered())
}
