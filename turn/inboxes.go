package turn

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

// How long a detach waits.
const (
	// finishFor bounds how long a voluntary release waits for the turn in flight (H4).
	finishFor = 30 * time.Second
	// abandonFor bounds how long an abandoned turn may take to be gone: its
	// program gets two seconds, then SIGKILL.
	abandonFor = 15 * time.Second
)

// Beat is what a watchdog wants to hear from a loop (X1).
type Beat interface {
	Waits(limit time.Duration)
	Cadence() time.Duration
	Done()
}

// lookFor bounds one look for lost wake-ups; the mail's own bounds are shorter.
const lookFor = time.Minute

// Inboxes are the inboxes that this node's seats read. Attach and Detach of one
// seat exclude each other by the host's lock on the seat.
type Inboxes struct {
	// Watch, set before Run, returns what is to hear that Run turns (X1).
	Watch func(name string) Beat

	worker *Worker
	mail   Mail
	mark   Mark
	log    *slog.Logger

	mu     sync.Mutex // guards inbox
	inbox  map[string]*inbox
	looked chan struct{} // one slot: look for mail whose wake-up was lost

	hurry   chan struct{} // closed by Hurry
	hurried sync.Once
}

// NewInboxes returns the inboxes of a node, none attached yet.
func NewInboxes(w *Worker, mail Mail, mark Mark, log *slog.Logger) *Inboxes {
	return &Inboxes{worker: w, mail: mail, mark: mark, log: log, inbox: map[string]*inbox{}, looked: make(chan struct{}, 1), hurry: make(chan struct{})}
}

// Attach starts reading the seat's inbox under the tenure that has its cursors.
// The wake-up is subscribed before the first read, so nothing falls between.
//
// The holds are taken before that: mail that a pause holds must not be the first
// thing a new holder runs (H3).
func (x *Inboxes) Attach(ctx context.Context, m *commands.Mailboxes, holds ...string) error {
	handle := m.Tenure.Lease.ID
	b := &inbox{
		worker: x.worker, mail: x.mail, m: m, box: events.Inbox,
		log:  x.log.With(keySeat, handle, keyEpoch, m.Tenure.Epoch),
		gate: newGate(append(holds, sagas.HoldAdmission)...), // until the host says that turns are admitted
		wake: make(chan struct{}, 1), quiesce: make(chan struct{}, 1), done: make(chan struct{}),
	}
	var err error
	if b.unsubscribe, err = x.mail.Subscribe(ctx, handle, b.box, func() { poke(b.wake) }); err != nil {
		return fmt.Errorf("subscribe to the wake-ups of %s: %w", handle, err)
	}
	// The inbox outlives the acquisition; Detach ends it.
	reading, end := context.WithCancelCause(context.WithoutCancel(ctx))
	b.end = end
	x.mu.Lock()
	x.inbox[handle] = b
	x.mu.Unlock()
	go b.run(reading)
	return nil
}

// Detach stops reading and returns once nothing of the seat's work is left
// here. With finish the turn in flight gets time to end; without, or past that
// time, it is abandoned: its program is ended and nothing of it is settled.
// What cannot be proven gone is an error, to be tried again (H6).
func (x *Inboxes) Detach(ctx context.Context, handle string, finish bool) error {
	b := x.of(handle)
	if b == nil {
		return nil
	}
	if finish {
		poke(b.quiesce)
		b.await(ctx, finishFor, x.hurry)
	}
	b.end(errDetached)
	if !b.await(ctx, abandonFor, nil) {
		return fmt.Errorf("the turn in flight on %s has not ended %v after it was told to", handle, abandonFor)
	}
	b.unsubscribe()
	if b.alive != nil {
		if err := EndChildren(ctx, x.mark, handle); err != nil {
			return err
		}
	}
	x.mu.Lock()
	delete(x.inbox, handle)
	x.mu.Unlock()
	return nil
}

// Hurry makes every Detach, also one at work, give turns no time to end: the node
// is told to stop at once. It is not undone.
func (x *Inboxes) Hurry() { x.hurried.Do(func() { close(x.hurry) }) }

// await waits until the loop has ended, that long at most, or until enough is
// closed.
func (b *inbox) await(ctx context.Context, limit time.Duration, enough <-chan struct{}) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-b.done:
		return true
	case <-t.C:
	case <-enough:
	case <-ctx.Done():
	}
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// Renewed lets the seats that deferred read on: their admission is proven again
// (A2, D2). It is also the beat on which lost wake-ups are looked for. It never
// blocks.
func (x *Inboxes) Renewed(handles []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, handle := range handles {
		if b := x.inbox[handle]; b != nil {
			b.gate.lift(sagas.HoldAdmission)
		}
	}
	poke(x.looked)
}

// Quiesce puts a named hold on the seat's inbox and waits for the turn in flight
// to end. The hold stays whatever it returns: the cause of ctx, when that ended
// first, or nil, also when no inbox is attached.
func (x *Inboxes) Quiesce(ctx context.Context, handle, hold string) error {
	b := x.of(handle)
	if b == nil {
		return nil
	}
	b.gate.take(hold)
	return b.gate.still(ctx)
}

// Hold puts a named hold on the seat's inbox; the turn in flight goes on.
func (x *Inboxes) Hold(handle, hold string) {
	if b := x.of(handle); b != nil {
		b.gate.take(hold)
	}
}

// Lift replaces the holds of the seat's inbox by what fn makes of them.
func (x *Inboxes) Lift(handle string, fn func(sagas.Holds) sagas.Holds) {
	if b := x.of(handle); b != nil {
		b.gate.set(fn)
	}
}

// RunEnded lets the mail that was held behind a run of the seat run now (D1). A
// seat that is not attached here needs none: who attaches it frees what no live
// run holds (Schedule17).
func (x *Inboxes) RunEnded(handle, run string) {
	if b := x.of(handle); b != nil {
		b.over.add(run)
		poke(b.wake)
	}
}

func (x *Inboxes) of(handle string) *inbox {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.inbox[handle]
}

// Run looks for lost wake-ups, one request for the whole node at each heartbeat,
// until ctx ends (design §6).
func (x *Inboxes) Run(ctx context.Context) error {
	idle, beat := (<-chan time.Time)(nil), func(time.Duration) {}
	if x.Watch != nil {
		duty := x.Watch("inboxes")
		defer duty.Done()
		tick := time.NewTicker(duty.Cadence())
		defer tick.Stop()
		idle, beat = tick.C, duty.Waits
	}
	for {
		beat(0)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-idle:
			continue
		case <-x.looked:
		}
		beat(lookFor)
		waiting, err := x.mail.Waiting(ctx, events.Inbox)
		if err != nil {
			continue // the next beat looks again; a seat in use reads anyway
		}
		x.mu.Lock()
		for handle, b := range x.inbox {
			if waiting[handle] > 0 {
				poke(b.wake)
			}
		}
		x.mu.Unlock()
	}
}
