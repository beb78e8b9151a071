package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/company"
	"github.com/seat-tenure/tenure/duty"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/seat"
)

// Duties (Y2), as far as there are any yet.
const (
	dutyMaintenance = "maintenance"
	dutyRetention   = "retention"

	retentionEvery = 15 * time.Minute
)

// roleWorkers is the role of nodes that tick duties.
const roleWorkers = "workers"

// duties are what this node may do for the whole fleet.
type duties struct {
	n         *node
	mailboxes *duty.Mailboxes
	runner    *duty.Runner
}

// newDuties wires the duties. Retirements claim seats as an incarnation of their
// own: the node's host is not to take such a lease for one that it forgot.
func newDuties(n *node) (*duties, error) {
	self, err := mintIncarnation(n.cfg.Node.ID)
	if err != nil {
		return nil, err
	}
	cfg := duty.Config{NodeID: n.cfg.Node.ID, TTL: n.store.LeaseTTL(), Protocol: seat.Protocol}
	if n.cfg.Coordination.Type == coordinationLocal {
		cfg.Local = n.dir.ID
	}
	shell := commands.New(broker.NewLog(n.store), n.store.Subjects(), self)
	d := &duties{n: n}
	d.mailboxes = duty.NewMailboxes(cfg, n.cfg.Mailbox.timings(), duty.MailboxesDeps{
		Self: self, Leases: shell, Steps: shell, Boxes: shell.Cursors(n.mail), Mail: n.mail, Fleet: fleetSight{n},
		Unseen: n.logClock.UnseenFor, Now: clock.System, Log: n.log,
	})
	renewals := &duty.Renewals{
		TTL: cfg.TTL, Before: n.logClock.Before, Log: n.log,
		Purge: func(ctx context.Context, below uint64) error {
			return n.store.Stream(events.StreamFleet).Purge(ctx, n.store.Subjects().Renewals(), below)
		},
	}
	d.runner = duty.NewRunner(cfg, duty.Deps{
		Leases: n.shell, Unseen: n.logClock.UnseenFor, Now: clock.System, Log: n.log,
		Watch: func(name string) duty.Beat { return n.watchdog.Watch(name) },
	},
		duty.Duty{Name: dutyMaintenance, Every: n.cfg.Mailbox.Tick, Tick: d.mailboxes.Tick},
		duty.Duty{Name: dutyRetention, Every: retentionEvery, Tick: renewals.Tick},
	)
	return d, nil
}

// run ticks duties once this node's views are up, if that is among its roles.
func (d *duties) run(ctx context.Context) error {
	if !slices.Contains(d.n.cfg.Node.Roles, roleWorkers) {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-d.n.views.Ready():
	}
	return d.runner.Run(ctx)
}

// fleetSight implements duty.Fleet on a node.
type fleetSight struct{ n *node }

// Roster implements duty.Fleet: the log's newest revision, if this node has it.
func (f fleetSight) Roster(ctx context.Context) (duty.Roster, error) {
	r, found, err := f.n.shell.Company(ctx)
	if err != nil {
		return duty.Roster{}, err
	}
	if !found {
		return duty.Roster{}, errNoCompany
	}
	newest := r.Event.(events.CompanyApplied)
	if have := f.n.roster.applied(); have != newest.Revision {
		return duty.Roster{}, &behindError{have, newest.Revision}
	}
	return rosterOf(r.Seq, newest), nil
}

var errNoCompany = errors.New("no company was applied yet")

// behindError: this node has not applied the company's newest revision, so it cannot
// say which seats there are. Mostly it will have in a moment.
type behindError struct{ have, newest uint64 }

func (e *behindError) Error() string {
	return fmt.Sprintf("this node has applied revision %d of the company, and the newest is %d", e.have, e.newest)
}

func rosterOf(position uint64, c events.CompanyApplied) duty.Roster {
	agents := make(map[string]string, len(c.Seats))
	for _, s := range c.Seats {
		agents[s.Handle] = s.AgentID
	}
	return duty.Roster{Company: c.Name, Position: position, Agents: agents}
}

// Records implements duty.Fleet.
func (f fleetSight) Records(ctx context.Context) ([]events.Recorded, error) {
	var all []events.Recorded
	subjects := f.n.store.Subjects()
	for _, filter := range []string{subjects.MailboxRecords(), subjects.Retirements()} {
		msgs, err := f.n.store.Stream(events.StreamFleet).LastPerSubject(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, msg := range msgs {
			r, err := events.Decode(subjects, msg)
			if err != nil {
				return nil, err
			}
			all = append(all, r)
		}
	}
	return all, nil
}

// maxRevisions bounds how many revisions between two ticks are looked through.
const maxRevisions = 64

// Listed implements duty.Fleet.
func (f fleetSight) Listed(ctx context.Context, after, before uint64) (map[string]uint64, bool, error) {
	listed, read := map[string]uint64{}, 0
	for r, err := range f.n.revisions(ctx, after) {
		if err != nil {
			return nil, false, err
		}
		if r.Seq >= before {
			return listed, true, nil
		}
		for _, s := range r.Event.(events.CompanyApplied).Seats {
			listed[s.Handle] = r.Seq
		}
		if read++; read == maxRevisions {
			return listed, false, nil
		}
	}
	return nil, false, fmt.Errorf("the revision at position %d: %w", before, events.ErrNotFound)
}

// Mailed implements duty.Fleet: only subjects of the mailbox grammar count (R3).
func (f fleetSight) Mailed(ctx context.Context, limit int) ([]string, error) {
	handles := map[string]bool{}
	for _, box := range events.Mailboxes {
		kept, err := f.n.mail.Waiting(ctx, box)
		if err != nil {
			return nil, err
		}
		for handle, n := range kept {
			if n > 0 && len(handles) < limit {
				handles[handle] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(handles)), nil
}

// maxOlder bounds how many older leases one judgement asks the log about.
const maxOlder = 64

// Older implements duty.Fleet (V1, R6): a presence or a seat's lease at a lower
// protocol that is in force and has not lapsed.
func (f fleetSight) Older(ctx context.Context, upTo uint64) (string, error) {
	if upTo > 0 {
		if err := f.n.views.AwaitPosition(ctx, events.StreamFleet, upTo); err != nil {
			return "", err
		}
	}
	var older []seat.Older
	err := f.n.view(func(r projections.Reader) (err error) {
		older, err = seat.OlderLeases(r, seat.Protocol)
		return err
	})
	if err != nil {
		return "", err
	}
	for i, o := range older {
		if i == maxOlder {
			return "", fmt.Errorf("there are %d leases of an older protocol, and one judgement asks about %d: finish the rollout", len(older), maxOlder)
		}
		now, err := f.n.shell.Lease(ctx, o.Lease)
		if err != nil {
			return "", err
		}
		age, known := f.n.logClock.UnseenFor(now.Last)
		if now.Status != aggregates.LeaseFree && (!known || age < events.LapsesAfter(f.n.store.LeaseTTL())) {
			return o.Lease.String() + " (" + string(now.Owner) + ")", nil
		}
	}
	return "", nil
}

// AgentID implements duty.Fleet.
func (f fleetSight) AgentID(name, handle string) string { return company.AgentID(name, handle) }
