package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seat-tenure/tenure/badgerstore"
	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/sagas"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/turn"
)

// views that a node follows.
var followed = []events.Stream{events.StreamFleet, events.StreamWork, events.StreamDead}

func (n *node) openViews(ctx context.Context) error {
	views, err := badgerstore.Open(ctx, filepath.Join(n.cfg.DataDir, "badger"), badgerstore.Options{
		Fleet: n.cfg.Stream.Prefix, Streams: followed, Logger: n.log,
	})
	if err != nil {
		return err
	}
	n.views = views
	n.closers = append(n.closers, func() { _ = views.Close() })
	return nil
}

// wire puts the host and the inboxes together.
func (n *node) wire(ctx context.Context) {
	ctx = context.WithoutCancel(ctx) // what a seat does outlives the start
	cfg := seat.Config{
		NodeID: n.cfg.Node.ID, Facts: events.NodeFacts{Roles: n.cfg.Node.Roles, Labels: n.cfg.Node.Labels},
		TTL: n.store.LeaseTTL(), SweepInterval: n.cfg.Seat.SweepInterval,
		Limits: seat.Limits{
			Claim: n.cfg.Seat.ClaimLimitPerSweep, Release: n.cfg.Seat.ReleaseLimitPerSweep,
			Adaptive: n.cfg.Seat.Limits == "adaptive",
		},
		RunsSeats: slices.Contains(n.cfg.Node.Roles, seat.RoleSeats), Protocol: seat.Protocol,
	}
	if n.cfg.Coordination.Type == coordinationLocal {
		cfg.Local = n.dir.ID
	}
	n.watchdog = seat.NewWatchdog(cfg.TTL, clock.System, os.Stderr)
	countSeats, countTurns := n.observers()
	worker := &turn.Worker{
		Subjects: n.store.Subjects(), Cursors: n.cursors, Ledger: n.shell, Agents: n.roster,
		Sender: seatMail{n}, Status: seatStatus{n.views}, Log: n.log,
		Observe: countTurns,
		// Given back, the seat is claimed anew and refused at the takeover, in every
		// pass: the alarm stays as long as the stream is wrong.
		Swapped: func(handle string, _ error) { _ = n.host.GiveBack(ctx, handle) },
	}
	n.inboxes = turn.NewInboxes(worker, n.mail, n.roster.mark, n.log)
	n.inboxes.Watch = func(name string) turn.Beat { return n.watchdog.Watch(name) }
	n.host = seat.New(cfg, seat.Deps{
		Self: n.self, Leases: n.shell, Reporter: n.shell, Takeover: n.cursors, LogClock: n.logClock,
		Handoffs: n.shell, Gates: n.inboxes, Progress: n.progress,
		Fleet: &seat.Sighting{
			View: n.view, Subjects: n.store.Subjects(),
			Presences: func(ctx context.Context) ([]events.Message, error) {
				return n.store.Stream(events.StreamFleet).LastPerSubject(ctx, n.store.Subjects().Families(events.KindNode))
			},
			Behind:    func() bool { return n.views.Copy(events.StreamFleet).State != projections.CopyCurrent },
			Converged: n.converged,
			Reached: func(ctx context.Context, position uint64) error {
				return n.views.AwaitPosition(ctx, events.StreamFleet, position)
			},
			Protocol: seat.Protocol,
		},
		Stages: []seat.Stage{{
			Name: "inbox", Up: n.attach,
			Down: func(ctx context.Context, handle string, mode seat.Mode) error {
				return n.inboxes.Detach(ctx, handle, mode == seat.Voluntary)
			},
		}},
		Renewed: n.inboxes.Renewed, Watchdog: n.watchdog, Observe: countSeats, Now: clock.System, Log: n.log,
	})
	worker.Admission = n.host
}

// attach brings a seat's inbox up, held if a person paused the seat (H3).
func (n *node) attach(ctx context.Context, m *commands.Mailboxes) error {
	var holds []string
	err := n.view(func(r projections.Reader) error {
		s, _, err := r.Seat(m.Tenure.Lease.ID)
		if s.Paused != nil {
			holds = append(holds, sagas.HoldPause)
		}
		return err
	})
	if err != nil {
		return err // whether it is paused is not known
	}
	if err := n.inboxes.Attach(ctx, m, holds...); err != nil {
		return err
	}
	handle := m.Tenure.Lease.ID
	if err := n.pausedSince(handle); err != nil {
		return errors.Join(err, n.inboxes.Detach(ctx, handle, false))
	}
	return nil
}

// pausedSince takes in a pause, or the end of one, that the view had only when
// the inbox was not attached yet: paused found none to hold. No turn is admitted
// before attach returns, so none has slipped through.
func (n *node) pausedSince(handle string) error {
	n.pausing.Lock() // else what is read here could undo what paused does
	defer n.pausing.Unlock()
	return n.view(func(r projections.Reader) error {
		s, _, err := r.Seat(handle)
		switch {
		case err != nil:
		case s.Paused != nil:
			n.inboxes.Hold(handle, sagas.HoldPause)
		default:
			n.inboxes.Lift(handle, func(h sagas.Holds) sagas.Holds { return h.Lift(sagas.HoldPause) })
		}
		return err
	})
}

// paused follows a person's pauses of seats that run here.
func (n *node) paused(r events.Recorded) {
	n.pausing.Lock()
	defer n.pausing.Unlock()
	switch e := r.Event.(type) {
	case events.SeatPaused:
		n.inboxes.Hold(e.Handle, sagas.HoldPause)
		if e.StopTurn {
			n.host.StopTurn(e.Handle)
		}
	case events.SeatResumed:
		n.host.ResumeTurns(e.Handle)
		n.inboxes.Lift(e.Handle, func(h sagas.Holds) sagas.Holds { return h.Lift(sagas.HoldPause) })
	}
}

// pausedBefore takes in a pause, or the end of one, that paused was given before
// the view had it: a seat that attached in between saw neither. A view that does
// not serve let none attach.
func (n *node) pausedBefore(r events.Recorded) {
	switch e := r.Event.(type) {
	case events.SeatPaused:
		_ = n.pausedSince(e.Handle)
	case events.SeatResumed:
		_ = n.pausedSince(e.Handle)
	}
}

// progress says in the log what a shutdown waits for, once for each change.
func (n *node) progress(left map[string]string) {
	if len(left) == 0 {
		n.log.Info("node_emptied")
		return
	}
	waits := make([]string, 0, len(left))
	for handle, why := range left {
		waits = append(waits, handle+": "+why)
	}
	slices.Sort(waits)
	n.log.Info("node_emptying", "seats", len(left), "waiting", strings.Join(waits[:min(len(waits), 10)], "; "))
}

// handoffs gives the host the handoffs that are open at the start: the newest
// event of each, then of its seat's lease.
func (n *node) handoffs(ctx context.Context) error {
	fleet, subjects := n.store.Stream(events.StreamFleet), n.store.Subjects()
	newest, err := fleet.LastPerSubject(ctx, subjects.Handoff("*"))
	if err != nil {
		return err
	}
	for _, msg := range newest {
		saga, err := events.Decode(subjects, msg)
		if err != nil {
			return err
		}
		if !sagas.EvolveHandoff(sagas.Handoff{}, saga.Seq, saga.Event).Open() {
			continue
		}
		n.host.Edge(saga)
		_, body := saga.Event.(events.HandoffEvent).Handoff()
		msg, err := fleet.Last(ctx, subjects.Family(events.SeatLease(body.Handle)))
		if err != nil {
			return err
		}
		lease, err := events.Decode(subjects, msg)
		if err != nil {
			return err
		}
		n.host.Edge(lease)
	}
	return nil
}

func (n *node) view(fn func(projections.Reader) error) error {
	return n.views.View(func(v projections.View) error { return fn(v) })
}

// parts lists what runs beside the host, for as long as the host does.
func (n *node) parts() []func(context.Context) error {
	registrar := newRegistrar(n)
	applied := func(c events.CompanyApplied) {
		if err := n.roster.set(c); err != nil {
			n.log.Error("company_unreadable", "revision", c.Revision, "err", err,
				"do", "this node goes on with the revision before; run a build at least as new as the one that applied it")
			return
		}
		registrar.look()
	}
	parts := []func(context.Context) error{
		n.logClock.Run,
		func(ctx context.Context) error {
			return n.marks().Run(ctx, func(err error) { n.log.Warn("stream_mark_failed", "err", err) })
		},
		n.inboxes.Run,
		registrar.run,
		n.operator.Run,
		n.duties.run,
	}
	for _, st := range followed {
		parts = append(parts, func(ctx context.Context) error {
			return n.views.Project(ctx, &viewSource{n: n, stream: st, applied: applied}, st)
		})
	}
	if n.api != nil {
		handler := n.handler()
		parts = append(parts, func(ctx context.Context) error { return graph.Serve(ctx, n.api, handler) })
	}
	return parts
}

// NotReady implements graph.Readiness: store open, broker writable, views at
// the head that was seen at the start, the presence this node's own.
func (n *node) NotReady() []string {
	var missing []string
	select {
	case <-n.views.Ready():
	default:
		missing = append(missing, "the read model has not caught up with the log yet")
	}
	if !n.store.Connected() {
		missing = append(missing, "the broker is not connected")
	}
	if err := n.host.Ready(); err != nil {
		missing = append(missing, err.Error())
	}
	return missing
}
