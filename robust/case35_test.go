package robust_test

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestCase35ClocksOfBrokerAndNode: on six real processes with their log in three
// brokers, the wall clock of the broker that leads FLEET jumps an hour ahead and
// then an hour behind, each for longer than a lease, and all clocks of a client
// jump an hour back between two renewals. No healthy holder loses a seat: not one
// claim is made. A node that is then killed has its seats taken after one TTL by the
// others' own clocks, though the leader's wall clock is an hour off (case 35, L6).
func TestCase35ClocksOfBrokerAndNode(t *testing.T) {
	if os.Getenv("TENURE_CASES") != "full" {
		t.Skip("this takes two minutes, and compiles everything for a wall clock of its own: run `make cases`")
	}
	w, err := newWorld(t.TempDir(), false, true)
	if err != nil {
		t.Fatal(err)
	}
	if w.tenure = os.Getenv(envTenure); w.tenure == "" {
		if w.tenure, err = buildTenure(w.dir, true); err != nil {
			t.Fatal(err)
		}
	}
	defer w.down()
	doc, err := w.company()
	if err != nil {
		t.Fatal(err)
	}
	w.nodes[0].start("--company", doc)
	for _, n := range w.nodes[1:] {
		n.start()
	}
	if err := w.settled(t.Context(), 90*time.Second, nil); err != nil {
		t.Fatal(err)
	}
	pause(t.Context(), ttl/2) // until shares have evened out
	before := w.holders(t)

	leader, err := w.leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		what string
		do   func() error
	}{
		{"the leader's wall clock +1 h", func() error { return leader.stepWall(3600) }},
		{"the leader's wall clock -1 h", func() error { return leader.stepWall(-3600) }},
		{"all clocks of n5 -1 h", func() error {
			return w.nodes[4].bendBy(func(d *deviation) {
				d.RawOffset, d.MonotonicOffset, d.BootOffset = -time.Hour, -time.Hour, -time.Hour
			})
		}},
	}
	for _, s := range steps {
		w.say("%s", s.what)
		if err := s.do(); err != nil {
			t.Fatal(err)
		}
		pause(t.Context(), ttl+ttl/3)
		for seat, was := range before {
			if is := w.holders(t)[seat]; is != was {
				t.Errorf("%s: %s went from %v to %v", s.what, seat, was, is)
			}
		}
	}

	victim := w.nodes[5]
	if err := victim.end(syscall.SIGKILL, 0); err != nil {
		t.Fatal(err)
	}
	died := time.Now()
	for taken := false; !taken; pause(t.Context(), 100*ms) {
		if time.Since(died) > 2*ttl {
			t.Fatalf("not all seats of a dead node were taken within %v", 2*ttl)
		}
		now := w.holders(t)
		taken = true
		for seat, was := range before {
			if was.owner[:2] == victim.id && now[seat].epoch == was.epoch {
				taken = false
			}
		}
	}
	t.Logf("the dead node's seats were taken after %v, with a TTL of %v", time.Since(died), ttl)
	if early := ttl - ttl/3; time.Since(died) < early {
		t.Errorf("they were taken before %v", early)
	}
	if _, err := w.tenureCLI(t.Context(), w.nodes[0], time.Minute, "audit"); err != nil {
		t.Error(err)
	}
}

// holders asks who holds what.
func (w *world) holders(t *testing.T) map[string]holding {
	t.Helper()
	l := &load{w: w, failed: map[string]int{}}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for len(l.reads) == 0 {
		if ctx.Err() != nil {
			t.Fatal(fmt.Errorf("nobody says who holds what: %v", l.failed))
		}
		l.read(ctx, w.nodes[0])
	}
	return l.reads[0].holders
}
