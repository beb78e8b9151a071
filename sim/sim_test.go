package sim_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/sim"
)

var (
	seeds    = flag.Int("sim.seeds", 4, "how many seeds to play, at least")
	seed     = flag.Uint64("sim.seed", 1, "the first of them")
	lasting  = flag.Duration("sim.for", 0, "go on with further seeds for that long")
	atOnce   = flag.Int("sim.parallel", 2, "how many fleets to run at a time")
	save     = flag.String("sim.save", "", "directory for the story of a seed that failed")
	minimise = flag.Bool("sim.minimise", true, "make the script of a seed that failed smaller")
)

// tries is how often a script is played before it is said not to fail: a seed
// decides the script, not which goroutine goes first.
const tries = 3

// TestSeeds draws what befalls fleets, and proves that they keep what the Judge
// asks all the same, that their histories pass the audit, and that each fleet
// comes to rest with every seat held once and all mail done, soon after things
// went well again (L1, L2, A1, A3, F2, D4, K1, R1).
func TestSeeds(t *testing.T) {
	var next atomic.Uint64
	var total sum
	next.Store(*seed)
	began := time.Now()
	var workers sync.WaitGroup
	for range *atOnce {
		workers.Go(func() {
			for !t.Failed() {
				n := next.Add(1) - 1
				if n >= *seed+uint64(*seeds) && time.Since(began) >= *lasting {
					return
				}
				t.Run(fmt.Sprint("seed=", n), func(t *testing.T) { total.add(seedOf(t, n)) })
			}
		})
	}
	workers.Wait()
	took := time.Since(began)
	t.Logf("%v in %v, %.1f a second", &total, took.Round(time.Millisecond), float64(total.seeds)/took.Seconds())
	if !t.Failed() && total.seeds < *seeds {
		t.Errorf("%d seeds were played, %d at least were asked for", total.seeds, *seeds)
	}
}

// seedOf plays a seed and makes a story of it if it fails.
func seedOf(t *testing.T, n uint64) outcome {
	s := sim.Draw(n)
	out := once(t, s)
	if len(out.faults) == 0 {
		return out
	}
	t.Log(strings.Join(out.log, "\n"))
	t.Errorf("seed %d: %s", n, strings.Join(out.faults, "\n  "))
	if *minimise {
		s = sim.Minimise(s, func(try sim.Script) bool {
			for range tries {
				if len(once(t, try).faults) > 0 {
					return true
				}
			}
			return false
		})
	}
	t.Errorf("seed %d fails with this script:\n%v", n, s)
	if *save != "" {
		file := filepath.Join(*save, fmt.Sprintf("sim-seed-%d.story", n))
		if err := os.WriteFile(file, []byte(s.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
	return out
}

// once plays a script in a bubble of its own.
func once(t *testing.T, s sim.Script) (out outcome) {
	synctest.Test(t, func(t *testing.T) { out = play(t, s) })
	return out
}

// TestStories plays what once went wrong, and what is worth seeing again.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("../testdata/stories/sim-*.story")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories (%v)", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".story"), func(t *testing.T) {
			t.Parallel()
			text, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer text.Close()
			s, err := sim.Parse(text)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if out := once(t, s); len(out.faults) > 0 {
				t.Errorf("%s\n%s", strings.Join(out.log, "\n"), strings.Join(out.faults, "\n"))
			}
		})
	}
}

// sum adds up outcomes.
type sum struct {
	mu      sync.Mutex
	seeds   int
	tally   sim.Tally
	longest time.Duration
}

func (s *sum) add(o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seeds++
	s.longest = max(s.longest, o.rested)
	s.tally.Mails += o.tally.Mails
	s.tally.Turns += o.tally.Turns
	s.tally.Deeds += o.tally.Deeds
	s.tally.Tenures += o.tally.Tenures
	s.tally.Reruns += o.tally.Reruns
	s.tally.Duplicated += o.tally.Duplicated
}

func (s *sum) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%d seeds: %d mails, %d turns with %d deeds, %d tenures, %d turns run again and reported, %d deeds duplicated by uncounted pauses; at rest after %v at the latest",
		s.seeds, s.tally.Mails, s.tally.Turns, s.tally.Deeds-s.tally.Turns, s.tally.Tenures, s.tally.Reruns, s.tally.Duplicated, s.longest.Round(time.Millisecond))
}
