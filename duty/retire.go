package duty

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

// ErrTooLong: the tenure that the retirement rests on is not to be trusted any
// longer (R6). What it began is gone on with by a later tick.
var ErrTooLong = errors.New("the retirement took longer than its budget, or than half the lease TTL; the next tick tries again")

// bound is how long one retirement may act, from before its claim was sent (R6).
func (m *Mailboxes) bound() time.Duration { return min(m.timings.Budget, m.cfg.TTL/2) }

// terms are what one retirement goes by beside its state.
type terms struct {
	now  bool // an operator waives what is left of the grace
	back bool // the seat was back since the mark: what came behind the mark is the seat's
}

// retire takes one mailbox from its grace, or from a mark that was left, to its
// end, under a tenure of the seat's lease. *HeldError when something holds it.
// The caller has m.mu.
func (m *Mailboxes) retire(ctx context.Context, roster Roster, s sagas.Retirement, by terms) (sagas.Retirement, error) {
	if err := m.gate(ctx, s, 0); err != nil {
		return s, err
	}
	began := m.deps.Now()
	// A stop of the node does not cut it short: it is over soon in any case.
	acting, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.bound())
	defer cancel()
	t, err := m.deps.Leases.Claim(acting, events.SeatLease(s.Handle), commands.Claim{TTL: m.cfg.TTL, Protocol: m.cfg.Protocol}, m.deps.Unseen)
	var held *aggregates.HeldError
	var reserved *aggregates.ReservedError
	switch {
	case errors.As(err, &held):
		return s, m.hold(ctx, s, events.RefusedHeld, string(held.Owner))
	case errors.As(err, &reserved):
		return s, m.hold(ctx, s, events.RefusedHeld, string(reserved.Successor))
	case err != nil:
		return s, fmt.Errorf("claim seat %s to retire its mailbox: %w", s.Handle, err)
	}
	defer m.letGo(ctx, t)
	// An older node that came up before the claim, and after it was looked for, is
	// seen there; one that comes later finds the seat held (ADR 0018).
	if err := m.gate(acting, s, t.Claimed); err != nil {
		return s, err
	}
	r := &retirement{m: m, roster: roster, tenure: t, began: began, state: s, by: by, unseen: m.sight(s.Handle, s).unseen}
	if err := r.run(acting); err != nil {
		m.log.Warn(logRetirementEnded, keySeat, s.Handle, keyEpoch, t.Epoch, "step", r.state.Step, keyErr, err)
		return r.state, err
	}
	return r.state, nil
}

// gate judges the protocol gate (V1, R6): *HeldError while a lease of a lower
// protocol is alive, another error when that is not known.
func (m *Mailboxes) gate(ctx context.Context, s sagas.Retirement, upTo uint64) error {
	older, err := m.deps.Fleet.Older(ctx, upTo)
	if err != nil {
		return fmt.Errorf("whether a node of an older protocol is alive: %w", err)
	}
	if older != "" {
		return m.hold(ctx, s, events.RefusedProtocol, older)
	}
	return nil
}

// hold records and tells what keeps a retirement that is due from beginning.
func (m *Mailboxes) hold(ctx context.Context, s sagas.Retirement, refused events.RetirementRefusal, by string) error {
	m.log.Warn(logHeld, keySeat, s.Handle, keySaga, s.ID(), "refused", refused, keyOwner, by)
	after, err := m.deps.Steps.Retire(ctx, s.Handle, func(sagas.Retirement, aggregates.Mailbox) sagas.RetirementCommand {
		return sagas.HoldRetirement{By: m.deps.Self, Refused: refused}
	})
	if err != nil {
		return err
	}
	if before := m.seen[s.Handle]; before != nil && after.Last != before.last && after.By == m.deps.Self {
		before.last = after.Last // its own, right behind its own tick: no time is lost
	}
	return &HeldError{s.Handle, refused, by}
}

// letGo releases the seat's lease. If that is not answered it lapses.
func (m *Mailboxes) letGo(ctx context.Context, t commands.Tenure) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	err := m.deps.Leases.Release(ctx, t, events.ReasonRetirement)
	var ended *aggregates.EndedError
	if err != nil && !errors.As(err, &ended) {
		m.log.Warn(logNotReleased, keySeat, t.Lease.ID, keyEpoch, t.Epoch, keyErr, err)
	}
}

// retirement is one mailbox being retired under a tenure.
type retirement struct {
	m      *Mailboxes
	roster Roster
	tenure commands.Tenure
	began  clock.Instant
	state  sagas.Retirement
	by     terms
	unseen time.Duration
}

// maxSteps bounds a retirement: from the mark to its end there are four.
const maxSteps = 8

// run does one step after the other. Before each it reads its clocks: a process
// that was paused for long goes on no further.
func (r *retirement) run(ctx context.Context) error {
	for range maxSteps {
		if clock.HolderElapsed(r.began, r.m.deps.Now()) >= r.m.bound() {
			return ErrTooLong
		}
		effect := sagas.NextRetirement(r.state, sagas.RetirementView{
			Owner: r.tenure.Owner, Epoch: r.tenure.Epoch, Unseen: r.unseen, Stale: r.m.timings.ResumeAfter, Now: r.by.now,
		})
		if effect == sagas.EffectLeave {
			return nil
		}
		if err := r.perform(ctx, effect); err != nil {
			return r.failed(ctx, err)
		}
		r.tell(effect)
	}
	return fmt.Errorf("%d steps and no end", maxSteps)
}

func (r *retirement) perform(ctx context.Context, effect sagas.RetirementEffect) error {
	owner, epoch := r.tenure.Owner, r.tenure.Epoch
	switch effect {
	case sagas.EffectMark, sagas.EffectResume:
		marks, err := r.marks(ctx, effect)
		if err != nil {
			return err
		}
		return r.step(ctx, func(_ sagas.Retirement, box aggregates.Mailbox) sagas.RetirementCommand {
			mark := sagas.MarkRetirement{
				By: r.m.deps.Self, Company: r.roster.Position, Owner: owner, Epoch: epoch, Claimed: r.tenure.Claimed, Marks: marks, Now: r.by.now, Mailbox: box,
			}
			if effect == sagas.EffectMark {
				return mark
			}
			return sagas.ResumeRetirement{MarkRetirement: mark, Unseen: r.unseen, Stale: r.m.timings.ResumeAfter, Back: r.by.back}
		})
	case sagas.EffectEndRuns: // no run outlives its holder yet, so there is none to end (R7)
		return r.step(ctx, func(sagas.Retirement, aggregates.Mailbox) sagas.RetirementCommand {
			return sagas.EndRuns{Owner: owner, Epoch: epoch}
		})
	case sagas.EffectPurge:
		if err := r.m.deps.Boxes.Empty(ctx, r.m.deps.Mail, r.state); err != nil {
			return err
		}
		return r.step(ctx, func(sagas.Retirement, aggregates.Mailbox) sagas.RetirementCommand {
			return sagas.MarkPurged{Owner: owner, Epoch: epoch}
		})
	case sagas.EffectComplete:
		return r.step(ctx, func(_ sagas.Retirement, box aggregates.Mailbox) sagas.RetirementCommand {
			return sagas.CompleteRetirement{Owner: owner, Epoch: epoch, Mailbox: box}
		})
	default:
		panic("duty: no way to " + string(effect) + " under a tenure")
	}
}

// marks are up to where the mail goes: all there is now. A mark that was left stays
// where it is when the seat was back since: mail that it was sent then is found again
// once the mailbox is gone, and has a grace of its own (R3, R4).
func (r *retirement) marks(ctx context.Context, effect sagas.RetirementEffect) (events.Marks, error) {
	if effect == sagas.EffectResume && r.by.back && r.state.Marks != nil {
		return *r.state.Marks, nil
	}
	return r.m.deps.Boxes.Marks(ctx, r.state.Handle)
}

func (r *retirement) step(ctx context.Context, command func(sagas.Retirement, aggregates.Mailbox) sagas.RetirementCommand) error {
	after, err := r.m.deps.Steps.Retire(ctx, r.state.Handle, command)
	if err == nil {
		r.state = after
	}
	return err
}

// tell logs what a step did.
func (r *retirement) tell(effect sagas.RetirementEffect) {
	seat := []any{keySeat, r.state.Handle, keyEpoch, r.tenure.Epoch, keySaga, r.state.ID()}
	switch effect {
	case sagas.EffectResume:
		r.m.log.Warn(logResumed, seat...)
	case sagas.EffectComplete:
		r.m.log.Info(logRetired, append(seat, "absent_for", r.state.Absent.Duration(), "now", r.state.Now)...)
	default: // the log of events has the steps between
	}
}

// failed takes the mark back, so that the next tick tries again and the seat may
// return meanwhile. A retirement that is another's by now is left alone.
func (r *retirement) failed(ctx context.Context, cause error) error {
	var other *sagas.NotMineError
	var fenced *aggregates.FencedError
	if !r.state.Marked() || errors.As(cause, &other) {
		return cause
	}
	if errors.As(cause, &fenced) {
		cause = fmt.Errorf("the seat is another's again: %w", cause)
	}
	if err := ctx.Err(); err != nil { // the next tick, or who adds the seat back, finds the mark
		return cause
	}
	err := r.step(ctx, func(_ sagas.Retirement, box aggregates.Mailbox) sagas.RetirementCommand {
		return sagas.UnmarkRetirement{Owner: r.tenure.Owner, Epoch: r.tenure.Epoch, Mailbox: box}
	})
	return errors.Join(cause, err)
}

// PresentError refuses to retire the mailbox of a seat that the company has.
type PresentError struct{ Handle string }

func (e *PresentError) Error() string {
	return fmt.Sprintf("the company has seat %q: only the mailbox of a seat that was removed can be retired", e.Handle)
}

// UnregisteredError: there is no such mailbox.
type UnregisteredError struct {
	Handle  string
	Retired bool
}

func (e *UnregisteredError) Error() string {
	if e.Retired {
		return fmt.Sprintf("the mailbox of %q is retired already", e.Handle)
	}
	return fmt.Sprintf("no mailbox of %q was ever registered", e.Handle)
}

// Retire retires the mailbox of a removed seat on behalf of an operator: the same
// saga, without waiting for the next tick, and with now not for the rest of the
// grace either. Errors: *PresentError, *UnregisteredError, *HeldError,
// sagas.RetiringError, sagas.GraceError, *aggregates.FencedError, *sagas.NotMineError,
// ErrTooLong, and whatever leaves it unknown.
func (m *Mailboxes) Retire(ctx context.Context, handle string, now bool) (sagas.Retirement, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	roster, s, err := m.retirable(ctx, handle)
	if err != nil {
		return s, err
	}
	back, err := m.back(ctx, roster, map[string]mailbox{handle: {saga: s}})
	if err != nil {
		return s, err
	}
	if was := back(handle); was || s.Step != events.RetireAbsent {
		if s, err = m.observe(ctx, roster, handle, was); err != nil {
			return s, err
		}
	}
	if !now && !s.Due() {
		return s, &sagas.GraceError{Handle: handle, Absent: s.Absent.Duration(), Grace: s.Grace.Duration()}
	}
	after, err := m.retire(ctx, roster, s, terms{now: now})
	if err == nil && after.Step != events.RetireCompleted {
		return after, &sagas.RetiringError{Handle: handle, Step: after.Step, Owner: after.Owner}
	}
	return after, err
}

func (m *Mailboxes) retirable(ctx context.Context, handle string) (Roster, sagas.Retirement, error) {
	roster, err := m.deps.Fleet.Roster(ctx)
	if err != nil {
		return roster, sagas.Retirement{}, err
	}
	if _, listed := roster.Agents[handle]; listed {
		return roster, sagas.Retirement{}, &PresentError{handle}
	}
	s, box, err := m.deps.Steps.RetirementNow(ctx, handle)
	switch {
	case err != nil:
		return roster, s, err
	case box.State == aggregates.MailboxUnknown, box.State == aggregates.MailboxRetired:
		return roster, s, &UnregisteredError{handle, box.State == aggregates.MailboxRetired}
	case s.Marked():
		return roster, s, &sagas.RetiringError{Handle: handle, Step: s.Step, Owner: s.Owner}
	}
	return roster, s, nil
}
