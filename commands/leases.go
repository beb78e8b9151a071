package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// Tenure is a lease that this process claimed: the capability to write as its
// holder. Last moves with every renewal.
type Tenure struct {
	Lease   events.Lease
	Owner   events.Incarnation
	Epoch   uint64
	Claimed uint64 // position of the claim: the tenure's own name in the log
	Last    uint64 // position of the family's newest event
	Local   string // data directory under local coordination, carried on every renewal
}

// Claim is what the claimant brings to a lease, whichever it is.
type Claim struct {
	Preferred string
	TTL       time.Duration // the fleet's (L7)
	Protocol  int
	Local     string // data directory under local coordination, else ""
	Node      *events.NodeFacts
	DeadLocal string // data directory whose lock this boot took, else ""
	Saga      string // handoff whose reservation the claim uses, else ""
	// Seen, unless nil, is the lease as the caller's reader of the log has it: a
	// hint, which the append checks. Of a lease that is free it spares the read.
	Seen *aggregates.Lease
}

// Unseen says how long the log clock has stood past a position, and false when
// it cannot tell.
type Unseen func(seq uint64) (time.Duration, bool)

// Lease reads a lease as it is now: the family's newest event, from the
// stream's leader.
func (s *Shell) Lease(ctx context.Context, l events.Lease) (aggregates.Lease, error) {
	r, ok, err := s.newest(ctx, events.StreamFleet, s.subjects.Family(l))
	if err != nil || !ok {
		return aggregates.Lease{}, err
	}
	return aggregates.EvolveLease(aggregates.Lease{}, r.Seq, r.Event), nil
}

// Claim asks for a new tenure of l in one write (design §3). Errors:
// *aggregates.HeldError when another may still hold it, events.ErrUnknown when
// the claim may stand or not (the next sweep finds it in this incarnation's
// name and gives it back), events.ErrUnavailable.
func (s *Shell) Claim(ctx context.Context, l events.Lease, c Claim, unseen Unseen) (t Tenure, err error) {
	if c.Seen != nil && c.Seen.Status == aggregates.LeaseFree {
		// Nobody renews a free lease, so its newest event is one that readers of
		// edges see: mostly the hint is right. Nothing is refused on the strength
		// of it.
		if claimed, err := s.decideClaim(l, c, *c.Seen, unseen); err == nil {
			t, err := s.appendClaim(ctx, l, c, claimed, c.Seen.Last)
			if !errors.Is(err, events.ErrConflict) {
				return t, err
			}
		}
	}
	err = tries(l, func() error {
		now, err := s.Lease(ctx, l)
		if err != nil {
			return err
		}
		claimed, err := s.decideClaim(l, c, now, unseen)
		if err != nil {
			return err
		}
		t, err = s.appendClaim(ctx, l, c, claimed, now.Last)
		return err
	})
	return t, err
}

func (s *Shell) decideClaim(l events.Lease, c Claim, now aggregates.Lease, unseen Unseen) (events.LeaseClaimed, error) {
	cmd := aggregates.ClaimLease{
		Lease: l, Owner: s.self, Preferred: c.Preferred, TTL: c.TTL, Protocol: c.Protocol,
		Local: c.Local, Node: c.Node, DeadLocal: c.DeadLocal, Saga: c.Saga,
	}
	cmd.Unseen, cmd.Known = unseen(now.Last)
	decided, err := aggregates.DecideLease(now, cmd)
	if err != nil {
		return events.LeaseClaimed{}, err
	}
	return decided[0].(events.LeaseClaimed), nil
}

func (s *Shell) appendClaim(ctx context.Context, l events.Lease, c Claim, claimed events.LeaseClaimed, last uint64) (Tenure, error) {
	m := s.meta()
	m.Epoch = claimed.Epoch
	seq, err := s.appendLease(ctx, l, m, claimed, last)
	if err != nil {
		return Tenure{}, err
	}
	return Tenure{l, s.self, claimed.Epoch, seq, seq, c.Local}, nil
}

// appendLease is the only place where a single lease event is appended: with
// the family's one wildcard check, safe form (b).
func (s *Shell) appendLease(ctx context.Context, l events.Lease, m events.Meta, e events.Event, last uint64) (uint64, error) {
	w, err := s.write(signed(ctx, m), e, s.subjects.FamilyCheck(l, last))
	if err != nil {
		return 0, err
	}
	r, err := s.log.Append(ctx, events.StreamFleet, w)
	return r.Seq, err
}

// Release ends the tenure for that reason. It succeeds when the tenure is over
// by this owner's release, now or earlier; *aggregates.EndedError says that it
// ended another way, which leaves nothing to release either.
func (s *Shell) Release(ctx context.Context, t Tenure, reason events.Reason) error {
	return tries(t.Lease, func() error {
		now, err := s.Lease(ctx, t.Lease)
		if err != nil {
			return err
		}
		decided, err := aggregates.DecideLease(now, aggregates.ReleaseLease{Lease: t.Lease, Owner: t.Owner, Epoch: t.Epoch, Reason: reason})
		if err != nil || len(decided) == 0 {
			return err
		}
		_, err = s.appendLease(ctx, t.Lease, s.of(t), decided[0], now.Last)
		return err
	})
}

// Renewed is the answer for one tenure: renewed (Err nil, Last moved), refused
// (*aggregates.EndedError: L8, returns false), or not known (any other error).
type Renewed struct {
	Tenure Tenure
	Err    error
}

// Refused says whether the renewal was refused because the tenure is over.
func (r Renewed) Refused() bool {
	var ended *aggregates.EndedError
	return errors.As(r.Err, &ended)
}

// Renew extends the tenures in atomic batches, checked on what each one's
// family was last seen at. A member that is refused is read again: a renewal
// of ours whose answer was lost is adopted and renewed over, anything else is
// the end of the tenure.
func (s *Shell) Renew(ctx context.Context, ts []Tenure) []Renewed {
	out := make([]Renewed, len(ts))
	var ws []events.Write
	var of []int // ws[k] renews ts[of[k]]
	for i, t := range ts {
		out[i].Tenure = t
		w, err := s.renewal(t)
		if err != nil {
			out[i].Err = err
			continue
		}
		ws, of = append(ws, w), append(of, i)
	}
	for k, r := range s.log.AppendEach(ctx, events.StreamFleet, ws) {
		i := of[k]
		switch {
		case r.Err == nil:
			out[i].Tenure.Last = r.Seq
		case errors.Is(r.Err, events.ErrConflict):
			out[i] = s.renewAgain(ctx, ts[i])
		default:
			out[i].Err = r.Err
		}
	}
	return out
}

// Report records what a node says of itself now, under its presence t, and
// returns the tenure as it stands after it. *aggregates.EndedError: the presence
// is over.
func (s *Shell) Report(ctx context.Context, t Tenure, facts events.NodeFacts) (Tenure, error) {
	err := tries(t.Lease, func() error {
		now, err := s.Lease(ctx, t.Lease)
		if err != nil {
			return err
		}
		decided, err := aggregates.DecideLease(now, aggregates.ReportNode{Lease: t.Lease, Owner: t.Owner, Epoch: t.Epoch, Node: facts})
		if err != nil {
			return err
		}
		seq, err := s.appendLease(ctx, t.Lease, s.of(t), decided[0], now.Last)
		if err == nil {
			t.Last = seq
		}
		return err
	})
	return t, err
}

// renewAgain renews one tenure whose family moved on since t.Last.
func (s *Shell) renewAgain(ctx context.Context, t Tenure) Renewed {
	err := tries(t.Lease, func() error {
		now, err := s.Lease(ctx, t.Lease)
		if err != nil {
			return err
		}
		decided, err := aggregates.DecideLease(now, aggregates.RenewLease{Lease: t.Lease, Owner: t.Owner, Epoch: t.Epoch})
		if err != nil {
			return err
		}
		seq, err := s.appendLease(ctx, t.Lease, s.of(t), decided[0], now.Last)
		if err == nil {
			t.Last = seq
		}
		return err
	})
	return Renewed{t, err}
}

func (s *Shell) renewal(t Tenure) (events.Write, error) {
	e := events.LeaseRenewed{Lease: t.Lease, Epoch: t.Epoch, Owner: t.Owner, Local: t.Local}
	return s.write(s.of(t), e, s.subjects.FamilyCheck(t.Lease, t.Last))
}

// Established records that the seat admits turns (H2). It is refused, like any
// write of a holder in FLEET, once another tenure was claimed (design §4).
func (s *Shell) Established(ctx context.Context, t Tenure) error {
	return s.report(ctx, t, events.SeatEstablished{Handle: t.Lease.ID, Epoch: t.Epoch, Owner: t.Owner})
}

// Unproven records that a teardown of the seat cannot be proven, so that the
// lease is kept (H6).
func (s *Shell) Unproven(ctx context.Context, t Tenure) error {
	return s.report(ctx, t, events.SeatUnproven{Handle: t.Lease.ID, Epoch: t.Epoch, Owner: t.Owner, Since: time.Now().UTC()})
}

// Proven records that it succeeded at last.
func (s *Shell) Proven(ctx context.Context, t Tenure) error {
	return s.report(ctx, t, events.SeatProven{Handle: t.Lease.ID, Epoch: t.Epoch, Owner: t.Owner})
}

// Skipped records that a trigger was settled without a turn (K5).
func (s *Shell) Skipped(ctx context.Context, t Tenure, eventID string, why events.SkipReason, detail string) error {
	return s.report(ctx, t, events.TriggerSkipped{
		Handle: t.Lease.ID, Epoch: t.Epoch, Owner: t.Owner, EventID: eventID, Why: why, Detail: detail,
	})
}

func (s *Shell) report(ctx context.Context, t Tenure, e events.Event) error {
	w, err := s.write(s.of(t), e, s.subjects.TenureCheck(t.Lease, t.Claimed))
	if err != nil {
		return err
	}
	if _, err = s.log.Append(ctx, events.StreamFleet, w); errors.Is(err, events.ErrConflict) {
		return &aggregates.EndedError{Lease: t.Lease, Epoch: t.Epoch}
	}
	if err != nil {
		return fmt.Errorf("report of %s: %w", t.Lease, err)
	}
	return nil
}
