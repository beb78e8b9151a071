package main

import (
	"context"
	"fmt"

	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/company"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
)

// companyDoc is a company document that a start brings along.
type companyDoc struct {
	name string // where it was read, for messages
	doc  []byte
	// first: it is for a fleet that has no company yet, and for no other.
	first bool
}

// companyRoom is how much of the broker's payload limit a packed document may
// take: base64 and the roster need the rest.
const companyRoom = 512 << 10

// packCompany judges a document and makes the event of it that a revision is: what
// it takes is applied, so that validate and a dry run promise nothing else. Errors:
// company.Problems, *company.TooLargeError and *commands.TooLargeError.
func packCompany(name string, doc []byte) (company.Company, events.CompanyApplied, error) {
	c, err := company.Parse(name, doc)
	if err != nil {
		return c, events.CompanyApplied{}, err
	}
	packed, digest, err := company.Pack(doc, companyRoom)
	if err != nil {
		return c, events.CompanyApplied{}, err
	}
	next := events.CompanyApplied{Name: c.Name, Digest: digest, Document: packed, Seats: c.Roster()}
	return c, next, commands.Fits(next)
}

// company applies the document that the start brought, if it is news, then reads
// the revision in force: what counts is the log's.
func (n *node) company(ctx context.Context, doc *companyDoc) error {
	if doc != nil {
		if err := n.bring(ctx, doc); err != nil {
			return err
		}
	}
	r, found, err := n.shell.Company(ctx)
	if err != nil {
		return err
	}
	if !found {
		n.log.Warn("company_missing", "do", "apply one with `tenure company apply`, or start a node with --company FILE; until then there are no seats")
		return nil
	}
	return n.roster.set(r.Event.(events.CompanyApplied))
}

// bring applies a document that the log has never had. One that it has had and
// that was replaced since is not applied again: a node that is merely restarted,
// with the file that it was always started with, would undo what others applied.
func (n *node) bring(ctx context.Context, doc *companyDoc) error {
	c, next, err := packCompany(doc.name, doc.doc)
	if err != nil {
		return &exitError{exitBadConfig, err}
	}
	r, found, err := n.shell.Company(ctx)
	if err != nil {
		return err
	}
	if now, _ := r.Event.(events.CompanyApplied); found && now.Digest != next.Digest {
		if doc.first {
			return nil // as every fleet that has grown past its first company
		}
		had, err := n.hadCompany(ctx, next.Digest, r.Seq)
		if err != nil {
			return err
		}
		if had {
			n.log.Warn("company_file_superseded", "file", doc.name, "revision", now.Revision,
				"do", "nothing, or `tenure company apply FILE` to go back to it: the log has had this document, and it was replaced since")
			return nil
		}
	}
	applied, err := n.shell.Apply(ctx, next)
	if err != nil {
		return err
	}
	if applied.New {
		n.log.Info("company_applied", "company", c.Name, "revision", applied.Revision, "seats", len(c.AgentSeats()))
	}
	return nil
}

// maxSearched bounds how many revisions a start looks through.
const maxSearched = 10_000

// hadCompany says whether a revision before that position had this document.
func (n *node) hadCompany(ctx context.Context, digest string, before uint64) (bool, error) {
	searched := 0
	for r, err := range n.revisions(ctx, 0) {
		if err != nil {
			return false, err
		}
		switch c := r.Event.(events.CompanyApplied); {
		case c.Digest == digest:
			return true, nil
		case r.Seq >= before:
			return false, nil
		}
		if searched++; searched == maxSearched {
			return false, fmt.Errorf("the log has more than %d revisions of the company: start without --company, and apply the document with `tenure company apply`", maxSearched)
		}
	}
	return false, nil
}

// converged says whether this node runs the revision that its view has. It does
// not where a newer build applied a document that this one cannot read: then it
// would claim seats whose agents it does not know, and fail their mail. It keeps
// what it holds, claims nothing and takes nothing for removed (P10, R5).
func (n *node) converged() bool {
	seen, err := n.revisionSeen()
	return err == nil && seen <= n.roster.applied()
}

// revisionSeen is the company's newest revision in this node's view, 0 for none.
func (n *node) revisionSeen() (uint64, error) {
	var c projections.Company
	err := n.view(func(r projections.Reader) (err error) {
		c, _, err = r.Company()
		return err
	})
	return c.Revision, err
}
