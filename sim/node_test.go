package sim_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/duty"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/sagas"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/seat/seattest"
	"github.com/seat-tenure/tenure/sim"
	"github.com/seat-tenure/tenure/turn"
)

// process is one run of a node: its host with hooks and inboxes, wired as
// cmd/node wires them.
type process struct {
	*seattest.Node
	w       *world
	gate    *gate
	wire    *wire
	inboxes *turn.Inboxes
	admits  *admits
	dead    atomic.Bool
	pausing sync.Mutex // between a pause that comes and a seat that attaches

	mu      sync.Mutex
	trouble map[sim.Verb][]trouble // of hooks to come; guarded by mu

	// For the driver's goroutine alone.
	stopped, uncounted bool
	cuts, stales       int
}

// trouble is how something is to go wrong.
type trouble struct {
	how  string
	for_ time.Duration
}

// boot starts a process of that node id.
func (w *world) boot(id string) *process {
	p := &process{w: w, gate: &gate{}, trouble: map[sim.Verb][]trouble{}}
	w.f.Start(seattest.Config{
		ID:      id,
		Store:   func(s broker.Store) broker.Store { p.wire = &wire{Store: s, gate: p.gate}; return p.wire },
		Stages:  p.stages,
		Gates:   gatesOf{p},
		Renewed: func(handles []string) { p.inboxes.Renewed(handles) },
		Edge:    p.edge,
	})
	w.note(string(p.Self) + " starts")
	w.parts.Go(func() { _ = p.inboxes.Run(w.ctx) })
	w.parts.Go(p.duties)
	w.all = append(w.all, p)
	w.nodes[id] = p
	return p
}

// pruneEvery is how often renewals are pruned: often enough to meet every fault.
const pruneEvery = 20 * time.Second

// duties tick here while the process is there and has them: the pruning of
// renewals, which takes the last one of a lease that has lapsed.
func (p *process) duties() {
	ctx, end := context.WithCancel(p.w.ctx)
	defer end()
	renewals := &duty.Renewals{
		TTL: p.w.f.TTL, Before: p.LogClock().Before, Log: p.Log.Logger(),
		Purge: func(ctx context.Context, below uint64) error {
			return p.Store.Stream(events.StreamFleet).Purge(ctx, p.w.f.Subjects.Renewals(), below)
		},
	}
	runner := duty.NewRunner(
		duty.Config{NodeID: p.ID, TTL: p.w.f.TTL, Protocol: seat.Protocol},
		duty.Deps{Leases: p.Shell, Unseen: p.LogClock().UnseenFor, Now: p.Clock.Now, Log: p.Log.Logger()},
		duty.Duty{Name: "retention", Every: pruneEvery, Tick: renewals.Tick},
	)
	var ticks sync.WaitGroup
	ticks.Go(func() { _ = runner.Run(ctx) })
	select {
	case <-p.Ended():
	case <-ctx.Done():
	}
	end()
	ticks.Wait()
}

// running says whether the process is there, leaving or not.
func (p *process) running() bool {
	select {
	case <-p.Ended():
		return false
	default:
		return !p.dead.Load()
	}
}

func (p *process) stages(n *seattest.Node) []seat.Stage {
	p.Node = n // before anything of it runs
	log := &ears{Handler: n.Log.Logger().Handler(), judge: p.w.judge, heard: &heard{reran: map[string]int{}}}
	p.admits = &admits{Cursors: n.Cursors, seqs: map[tenureOf][]uint64{}}
	worker := &turn.Worker{
		Subjects: p.w.f.Subjects, Admission: hostOf{n}, Cursors: p.admits, Ledger: n.Shell,
		Agents: agents{p, log}, Sender: sender{p, n}, Status: status{p}, Log: log.logger(),
		Swapped: func(handle string, err error) { p.w.fault("%s took MAIL for swapped at %s: %v", n.Self, handle, err) },
	}
	p.inboxes = turn.NewInboxes(worker, broker.NewMailboxes(n.Store), turn.Mark{}, log.logger())
	return []seat.Stage{
		{
			Name: "tools",
			Up:   func(ctx context.Context, _ *commands.Mailboxes) error { return p.meet(ctx, sim.Up) },
			Down: func(ctx context.Context, _ string, _ seat.Mode) error { return p.meet(ctx, sim.Down) },
		},
		{
			Name: "inbox", Up: p.attach,
			Down: func(ctx context.Context, handle string, mode seat.Mode) error {
				return p.inboxes.Detach(ctx, handle, mode == seat.Voluntary)
			},
		},
	}
}

// meet lets a hook go wrong, if it is to.
func (p *process) meet(ctx context.Context, hook sim.Verb) error {
	p.gate.wait()
	p.mu.Lock()
	var x trouble
	if all := p.trouble[hook]; len(all) > 0 {
		x, p.trouble[hook] = all[0], all[1:]
	}
	p.mu.Unlock()
	switch x.how {
	case "fail":
		return errors.New("the hook fails")
	case "panic":
		panic("the hook panics")
	case "hang":
		return pass(ctx, x.for_)
	}
	return nil
}

// attach brings a seat's inbox up, held if a person paused the seat (H3).
func (p *process) attach(ctx context.Context, m *commands.Mailboxes) error {
	handle := m.Tenure.Lease.ID
	var holds []string
	err := p.View(func(r projections.Reader) error {
		s, _, err := r.Seat(handle)
		if s.Paused != nil {
			holds = append(holds, sagas.HoldPause)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := p.inboxes.Attach(ctx, m, holds...); err != nil {
		return err
	}
	p.pausing.Lock() // a pause that the view had only when the inbox was not there yet
	defer p.pausing.Unlock()
	return p.View(func(r projections.Reader) error {
		s, _, err := r.Seat(handle)
		switch {
		case err != nil:
		case s.Paused != nil:
			p.inboxes.Hold(handle, sagas.HoldPause)
		default:
			p.inboxes.Lift(handle, func(h sagas.Holds) sagas.Holds { return h.Lift(sagas.HoldPause) })
		}
		return err
	})
}

// edge follows people's pauses.
func (p *process) edge(r events.Recorded) {
	p.pausing.Lock()
	defer p.pausing.Unlock()
	switch e := r.Event.(type) {
	case events.SeatPaused:
		p.inboxes.Hold(e.Handle, sagas.HoldPause)
		if e.StopTurn {
			p.Host.StopTurn(e.Handle)
		}
	case events.SeatResumed:
		p.Host.ResumeTurns(e.Handle)
		p.inboxes.Lift(e.Handle, func(h sagas.Holds) sagas.Holds { return h.Lift(sagas.HoldPause) })
	}
}

// hostOf is the host of a node that is still being started.
type hostOf struct{ n *seattest.Node }

func (h hostOf) MayStart(handle string) (uint64, error)  { return h.n.Host.MayStart(handle) }
func (h hostOf) Fence(handle string, epoch uint64) error { return h.n.Host.Fence(handle, epoch) }

// gatesOf are the inboxes of a process that is still being started.
type gatesOf struct{ p *process }

func (g gatesOf) Quiesce(ctx context.Context, handle, hold string) error {
	return g.p.inboxes.Quiesce(ctx, handle, hold)
}

func (g gatesOf) Lift(handle string, fn func(sagas.Holds) sagas.Holds) { g.p.inboxes.Lift(handle, fn) }

// tenureOf names a tenure within a process.
type tenureOf struct {
	handle string
	epoch  uint64
}

// admits notes on which mail each tenure's turn was admitted last: a runner is
// not told.
type admits struct {
	turn.Cursors
	mu   sync.Mutex
	seqs map[tenureOf][]uint64 // guarded by mu
}

func (a *admits) Attempt(ctx context.Context, m *commands.Mailboxes, box events.Mailbox, seqs []uint64, ended ...uint64) error {
	err := a.Cursors.Attempt(ctx, m, box, seqs, ended...)
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.seqs[tenureOf{m.Tenure.Lease.ID, m.Tenure.Epoch}] = slices.Clone(seqs)
	}
	return err
}

func (a *admits) on(handle string, epoch uint64) []uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seqs[tenureOf{handle, epoch}]
}
