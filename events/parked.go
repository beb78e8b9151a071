package events

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MailParked is mail that was set aside with its reason and stays readable.
type MailParked struct {
	Handle   string         `json:"-"`
	Mailbox  Mailbox        `json:"mailbox"`
	EventID  string         `json:"event_id"` // "" when the mail could not be read
	MailSeq  uint64         `json:"mail_seq"`
	Mail     StreamIdentity `json:"mail"`
	Epoch    uint64         `json:"epoch"`
	Owner    Incarnation    `json:"owner"`
	Attempts int            `json:"attempts"`
	Reason   string         `json:"reason"`
	Header   Header         `json:"header,omitempty"`
	Data     []byte         `json:"data,omitempty"`
	History  []Tried        `json:"history,omitempty"` // of its attempts, the oldest first
	// Clipped: what of the mail did not fit beside the reason was left out, so
	// that it cannot be replayed. Bytes is how long its data was.
	Clipped bool `json:"clipped,omitempty"`
	Bytes   int  `json:"bytes,omitempty"`
	// ByMail: the record stands under the key of this one message. Records of old
	// stand under their event id, where a second message of one id, such as a
	// replayed one, finds the first in its place.
	ByMail bool `json:"by_mail,omitempty"`
	Kept
}

// Key names the parked message: one stored message, not one event id, since the
// same event may be parked, replayed and parked again. It is the same however
// often and by whomever the message is parked.
func (e MailParked) Key() string {
	return Digest(strings.Join([]string{e.Mail.CreatedAt, strconv.FormatUint(e.MailSeq, 10), e.EventID}, "\n"))
}

// deadDigest is the last token of the record's subject.
func (e MailParked) deadDigest() string {
	switch {
	case e.ByMail:
		return e.Key()
	case e.EventID != "":
		return Digest(e.Mail.String() + "\n" + e.EventID)
	default:
		return Digest(e.Mail.String() + "\n" + fmt.Sprintf("mail %d", e.MailSeq))
	}
}

// ParkedEvent is what the events about one parked mail have in common. At most
// one of MailReplayed and MailDropped is ever written for it.
type ParkedEvent interface {
	Event
	Parked() ParkedBody
}

// ParkedBody says which mail an operator decided about, and who that was.
type ParkedBody struct {
	Handle  string `json:"-"`
	Key     string `json:"-"` // MailParked.Key
	DeadSeq uint64 `json:"dead_seq"`
	EventID string `json:"event_id,omitempty"` // "" when the mail could not be read
	By      string `json:"by"`
	Reason  string `json:"reason"`
	Kept
}

// MailReplayed: the mail is to be sent to its seat again.
type MailReplayed struct{ ParkedBody }

// MailReturned: it stands in MAIL again, at MailSeq; from here on nothing sends it.
type MailReturned struct {
	ParkedBody
	MailSeq uint64 `json:"mail_seq"`
}

// MailDropped: it will not be sent again. The record of it stays readable.
type MailDropped struct{ ParkedBody }

func (MailParked) event()   {}
func (MailReplayed) event() {}
func (MailReturned) event() {}
func (MailDropped) event()  {}

// Parked says which mail it is about.
func (b ParkedBody) Parked() ParkedBody { return b }

func (b *ParkedBody) place(t target) { b.Handle, b.Key = t.handle, t.digest }

func (b ParkedBody) whole() error {
	return errors.Join(present("by", b.By), present("reason", b.Reason), positive("dead_seq", b.DeadSeq), present("key", b.Key))
}

func (e MailParked) validate() error {
	return errors.Join(tenure(e.Epoch, e.Owner), present("reason", e.Reason), positive("mail_seq", e.MailSeq))
}

func (e MailReplayed) validate() error { return e.whole() }
func (e MailReturned) validate() error {
	return errors.Join(e.whole(), positive("mail_seq", e.MailSeq))
}
func (e MailDropped) validate() error { return e.whole() }
