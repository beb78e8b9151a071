package turn_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat/seattest"
	"github.com/seat-tenure/tenure/turn"
)

// station is one process that has a seat and reads its inbox, with the real log,
// cursors, ledger and mail behind it; admission is the test's.
type station struct {
	t       *testing.T
	handle  string
	log     *seattest.Records
	shell   *commands.Shell
	cursors *commands.Cursors
	inboxes *turn.Inboxes
	boxes   *commands.Mailboxes // of the tenure that hold began
	agent   *agent
	worker  *turn.Worker

	mu      sync.Mutex
	shut    error    // of MayStart; guarded by mu
	fence   error    // guarded by mu
	swapped []string // guarded by mu
	run     string   // that holds the seat; guarded by mu
}

// stationOf boots a process over a connection of its own. It holds no seat yet.
func stationOf(t *testing.T, store broker.Store, self events.Incarnation, handle string, a *agent, changes ...func(*turn.Worker)) *station {
	t.Helper()
	s := &station{t: t, handle: handle, log: &seattest.Records{}, agent: a}
	s.shell = commands.New(seattest.NewLog(store), store.Subjects(), self)
	mail := broker.NewMailboxes(store)
	s.cursors = s.shell.Cursors(mail)
	log := s.log.Logger()
	w := &turn.Worker{
		Subjects: store.Subjects(), Admission: s, Cursors: s.cursors, Ledger: s.shell, Agents: a,
		Sender: sender{shell: s.shell}, Status: sender{}, Runs: s, Log: log,
		Swapped: func(handle string, _ error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.swapped = append(s.swapped, handle)
		},
	}
	for _, change := range changes {
		change(w)
	}
	s.worker = w
	s.reads(mail)
	return s
}

// reads makes the station read its mail there.
func (s *station) reads(mail turn.Mail) {
	inboxes := turn.NewInboxes(s.worker, mail, turn.Mark{}, s.log.Logger())
	s.inboxes = inboxes
	watching := make(chan struct{})
	ctx, stop := context.WithCancel(context.WithoutCancel(s.t.Context()))
	go func() {
		defer close(watching)
		_ = inboxes.Run(ctx)
	}()
	s.t.Cleanup(func() {
		stop()
		<-watching
	})
}

// hold claims the seat and takes its mailbox over; whoever had it is long gone.
func (s *station) hold() {
	s.t.Helper()
	old := func(uint64) (time.Duration, bool) { return time.Hour, true }
	held, err := s.shell.Claim(s.t.Context(), events.SeatLease(s.handle), commands.Claim{TTL: deskTTL, Protocol: 4}, old)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.boxes, err = s.cursors.TakeOver(s.t.Context(), held); err != nil {
		s.t.Fatal(err)
	}
}

func (s *station) attach(holds ...string) {
	s.t.Helper()
	if err := s.inboxes.Attach(s.t.Context(), s.boxes, holds...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *station) detach(finish bool) {
	s.t.Helper()
	if err := s.inboxes.Detach(context.WithoutCancel(s.t.Context()), s.handle, finish); err != nil {
		s.t.Errorf("detach: %v", err)
	}
}

func (s *station) MayStart(string) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.boxes.Tenure.Epoch, s.shut
}

func (s *station) Fence(string, uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fence
}

// admit opens or shuts admission, as renewals and their absence do.
func (s *station) admit(err error) {
	s.mu.Lock()
	s.shut = err
	s.mu.Unlock()
	if err == nil {
		s.inboxes.Renewed([]string{s.handle})
	}
}

func (s *station) trip(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fence = err
}

func (s *station) swaps() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.swapped)
}

func (s *station) Holding(string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run
}

// begin lets a detached run hold the seat; end ends it.
func (s *station) begin(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run = run
}

func (s *station) end(run string) {
	s.begin("")
	s.inboxes.RunEnded(s.handle, run)
}
