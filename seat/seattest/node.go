package seattest

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/sagas"
	"github.com/seat-tenure/tenure/seat"
)

// Config is how a node differs from the plain one.
type Config struct {
	ID     string
	Labels map[string]string
	Limits seat.Limits // default: 4 and 2, fixed
	Local  string
	TTL    time.Duration // default: the fleet's, as the product has it (L7)
	Sweep  time.Duration // default: 5 s
	// Stages of a seat; made once the node's parts stand.
	Stages func(*Node) []seat.Stage
	// Renewed is told what the host tells of renewed seats.
	Renewed func(handles []string)
	// Leases wraps what the host writes leases with.
	Leases func(seat.Leases) seat.Leases
	// Handoffs wraps what the host writes handoffs with.
	Handoffs func(seat.Handoffs) seat.Handoffs
	// Gates hold the seats' inboxes; default: there is none to hold.
	Gates seat.Gates
	// Store wraps what the node sees of the broker.
	Store func(broker.Store) broker.Store
	// Behind says that the node's view is not level with the log (P10).
	Behind func() bool
	// Protocol is the node's lease protocol; default: this build's (V1).
	Protocol int
	// Watchdog watches the node's duties; default: nobody does.
	Watchdog *seat.Watchdog
	// Edge is told each event of FLEET but renewals, in order, once the node's
	// model has it; default: nobody is.
	Edge func(events.Recorded)
	// Observe is told what the host does; default: nobody is.
	Observe seat.Observer
	// Log takes what the node logs; default: records of its own.
	Log *Records
	// Reuse boots the node as that incarnation, else a new one.
	Reuse events.Incarnation
}

// Node is one process on the fleet.
type Node struct {
	ID      string
	Self    events.Incarnation
	Conn    *broker.Memory // its connection, with its faults
	Store   broker.Store   // the same, as the node sees it
	Clock   *Clock
	Shell   *commands.Shell
	Cursors *commands.Cursors
	Host    *seat.Host
	Log     *Records

	model    *model
	logClock *broker.LogClock
	stop     context.CancelFunc // SIGTERM
	parts    sync.WaitGroup
	ended    chan struct{} // closed when Host.Run has returned
}

// Start boots a node. It runs until Stop, Kill or the end of the test.
func (f *Fleet) Start(cfg Config) *Node {
	n := &Node{
		ID: cfg.ID, Self: cfg.Reuse, Conn: f.Conn.Peer(), Clock: &Clock{}, Log: cfg.Log,
		model: &model{rows: map[string][]byte{}, more: make(chan struct{})}, ended: make(chan struct{}),
	}
	if n.Log == nil {
		n.Log = &Records{}
	}
	if n.Self == "" {
		n.Self = f.Boot(cfg.ID)
	}
	n.Store = n.Conn
	if cfg.Store != nil {
		n.Store = cfg.Store(n.Conn)
	}
	n.Shell = commands.New(NewLog(n.Store), f.Subjects, n.Self)
	n.Cursors = n.Shell.Cursors(broker.NewMailboxes(n.Store))
	n.logClock = broker.NewLogClock(n.Store.Stream(events.StreamFleet), n.Clock.Now, f.TTL)
	n.Host = f.host(n, cfg)

	edge := cfg.Edge
	if edge == nil {
		edge = func(events.Recorded) {}
	}
	running, stop := context.WithCancel(f.tb.Context())
	serving, end := context.WithCancel(context.WithoutCancel(f.tb.Context()))
	n.stop = stop
	n.parts.Go(func() { _ = n.logClock.Run(serving) })
	n.parts.Go(func() { _ = n.model.follow(serving, n.Store, n.Host, edge) })
	n.parts.Go(func() {
		_ = n.Host.Run(running)
		close(n.ended)
		end()
	})
	f.tb.Cleanup(func() {
		stop()
		n.parts.Wait()
		n.Conn.Faults.Settle()
		_ = n.Conn.Close()
	})
	return n
}

func (f *Fleet) host(n *Node, cfg Config) *seat.Host {
	c := seat.Config{
		NodeID: cfg.ID, Facts: events.NodeFacts{Roles: []string{seat.RoleSeats}, Labels: cfg.Labels},
		TTL: f.TTL, SweepInterval: 5 * time.Second, Limits: cfg.Limits, Local: cfg.Local, RunsSeats: true,
		Protocol: cmp.Or(cfg.Protocol, seat.Protocol),
	}
	if cfg.TTL > 0 {
		c.TTL = cfg.TTL
	}
	if cfg.Sweep > 0 {
		c.SweepInterval = cfg.Sweep
	}
	if c.Limits == (seat.Limits{}) {
		c.Limits = seat.Limits{Claim: 4, Release: 2}
	}
	d := seat.Deps{
		Self: n.Self, Leases: n.Shell, Reporter: n.Shell, Takeover: n.Cursors, LogClock: n.logClock,
		Fleet: &seat.Sighting{
			View: n.model.view,
			Presences: func(ctx context.Context) ([]events.Message, error) {
				return n.Store.Stream(events.StreamFleet).LastPerSubject(ctx, f.Subjects.Families(events.KindNode))
			},
			Subjects: f.Subjects, Behind: func() bool { return false },
			Reached: n.model.reached, Protocol: cmp.Or(cfg.Protocol, seat.Protocol),
		},
		Handoffs: n.Shell, Gates: openGates{},
		Renewed: func([]string) {}, Now: n.Clock.Now, Log: n.Log.Logger(), Observe: cfg.Observe, Watchdog: cfg.Watchdog,
	}
	if cfg.Behind != nil {
		d.Fleet.(*seat.Sighting).Behind = cfg.Behind
	}
	if cfg.Renewed != nil {
		d.Renewed = cfg.Renewed
	}
	if cfg.Leases != nil {
		d.Leases = cfg.Leases(n.Shell)
	}
	if cfg.Handoffs != nil {
		d.Handoffs = cfg.Handoffs(n.Shell)
	}
	if cfg.Gates != nil {
		d.Gates = cfg.Gates
	}
	if cfg.Stages != nil {
		d.Stages = cfg.Stages(n)
	}
	return seat.New(c, d)
}

// openGates is a node whose seats have no inbox to hold.
type openGates struct{}

// Quiesce implements seat.Gates.
func (openGates) Quiesce(context.Context, string, string) error { return nil }

// Lift implements seat.Gates.
func (openGates) Lift(string, func(sagas.Holds) sagas.Holds) {}

// Stop drains the node, as SIGTERM does, and waits until it has ended.
func (n *Node) Stop() {
	n.stop()
	<-n.ended
}

// Kill ends the node as SIGKILL does: nothing of it reaches the log any more.
func (n *Node) Kill() {
	n.Conn.Faults.CutOff(true)
	n.stop()
}

// LogClock judges lapses for the node.
func (n *Node) LogClock() *broker.LogClock { return n.logClock }

// Ended is closed once the host has given everything back, or given up on it.
func (n *Node) Ended() <-chan struct{} { return n.ended }

// View runs fn on the node's read model at one instant; it is a seat.View.
func (n *Node) View(fn func(projections.Reader) error) error { return n.model.view(fn) }

// FreezeView makes the node's read model stand still (true) or go on.
func (n *Node) FreezeView(still bool) { n.model.freeze(still) }
