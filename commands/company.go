package commands

import (
	"context"
	"fmt"
	"math"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// Applied is a revision in force.
type Applied struct {
	Revision uint64
	Position uint64
	New      bool // this apply made it; else it was in force already
}

// maxCompany bounds a revision's event in bytes: the streams take messages of
// 1 MiB, and headers need some of it.
const maxCompany = 1<<20 - 16<<10

// TooLargeError: the company is larger, packed, than one event can be.
type TooLargeError struct{ Have, Limit int } // bytes

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the company, packed with its list of seats, is %d bytes, and at most %d fit into one event; shorten it", e.Have, e.Limit)
}

// Fits says whether an event can hold the company: nil, or *TooLargeError. It is what
// Apply judges, for whoever is to know it beforehand.
func Fits(c events.CompanyApplied) error {
	c.Revision = math.MaxInt64                   // as long as a revision's number gets
	subjects, err := events.NewSubjects("fleet") // any: only the data count
	if err != nil {
		return err
	}
	w, err := events.Encode(subjects, events.Meta{}, c)
	if err != nil {
		return err
	}
	return fits(w)
}

func fits(w events.Write) error {
	if len(w.Data) > maxCompany {
		return &TooLargeError{Have: len(w.Data), Limit: maxCompany}
	}
	return nil
}

// Apply makes c the newest revision of the company, unless it is that already,
// whatever revision stands before it.
func (s *Shell) Apply(ctx context.Context, c events.CompanyApplied) (Applied, error) {
	return s.apply(ctx, aggregates.ApplyCompany{Next: c})
}

// ApplyOver is Apply for a document that was written against that revision, 0
// for none before. When another is in force by then nothing changes, and the
// error is *aggregates.StaleRevisionError with the one that is: of two who apply
// over the same revision one wins, and the other is told by which.
func (s *Shell) ApplyOver(ctx context.Context, revision uint64, c events.CompanyApplied) (Applied, error) {
	return s.apply(ctx, aggregates.ApplyCompany{Next: c, Expected: &revision})
}

func (s *Shell) apply(ctx context.Context, cmd aggregates.ApplyCompany) (Applied, error) {
	var out Applied
	err := tries(name("company"), func() error {
		r, _, err := s.Company(ctx)
		if err != nil {
			return err
		}
		var now aggregates.Company
		if before, applied := r.Event.(events.CompanyApplied); applied {
			now = aggregates.EvolveCompany(now, r.Seq, before)
		}
		decided, err := aggregates.DecideApply(now, cmd)
		if err != nil {
			return err
		}
		out = Applied{Revision: now.Revision, Position: now.Last}
		for _, e := range decided {
			w, err := s.write(signed(ctx, s.meta()), e, &events.Check{Subject: s.subjects.Company(), Last: now.Last})
			if err != nil {
				return err
			}
			if err := fits(w); err != nil {
				return err
			}
			stored, err := s.log.Append(ctx, events.StreamFleet, w)
			if err != nil {
				return err
			}
			out = Applied{Revision: e.(events.CompanyApplied).Revision, Position: stored.Seq, New: true}
		}
		return nil
	})
	return out, err
}

// Company reads the newest revision from the log's leader; found is false when
// none was applied.
func (s *Shell) Company(ctx context.Context) (r events.Recorded, found bool, err error) {
	return s.newest(ctx, events.StreamFleet, s.subjects.Company())
}
