package badgerstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/badgerstore"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
)

// Case17: followers of one stream that are started and stopped under load never
// run at once, and leave no duplicate and no hole.
func TestCase17OneWriter(t *testing.T) {
	s := open(t, t.TempDir(), options(&lines{}))
	rounds := 20
	if full {
		rounds = 100
	}
	all := claims(100 + 9*rounds)
	src := newSource(fleet, all[:100]...)
	for i := range rounds {
		stop := project(t, s, src)
		src.followed()
		if err := s.Project(t.Context(), src, fleet); !errors.Is(err, badgerstore.ErrFollowed) {
			t.Fatalf("a second follower: got %v", err)
		}
		src.append(all[100+i*9 : 109+i*9]...)
		if i%2 == 0 {
			until(t, s, "some more is applied", func() bool { return s.Copy(fleet).Position >= uint64(100+i*9) })
		}
		stop()
	}
	project(t, s, src)
	reaches(t, s, fleet, uint64(len(all)))
	if src.most != 1 {
		t.Errorf("%d followers ran at once", src.most)
	}
	if got, want := dump(t, s), rebuilt(t, newSource(fleet, all...)); got != want {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
}

// Followers of different streams share the store, and every copy is its own:
// what is wrong with WORK does not take FLEET out of service.
func TestStreamsAreIndependent(t *testing.T) {
	s := open(t, t.TempDir(), options(&lines{}, fleet, work))
	src, bad := newSource(fleet, claims(20)...), newSource(work, completed(1, "dev", "e1"), completed(2, "dev", "e2"))
	bad.failing = func(r events.Recorded) error {
		if r.Seq == 2 {
			return &events.UnknownError{Stream: work, Seq: 2, Name: "turn-completed", Version: "9"}
		}
		return nil
	}
	project(t, s, src)
	project(t, s, bad)
	reaches(t, s, fleet, 20)
	until(t, s, "WORK is out of service", func() bool { return s.Copy(work).State == projections.CopyOutOfService })
	err := s.View(func(v projections.View) error {
		if _, found, err := v.Seat("seat-1"); !found || err != nil {
			t.Errorf("FLEET: found %v, err %v", found, err)
		}
		_, _, err := v.Completion("dev", "e1")
		return err
	})
	if !errors.Is(err, projections.ErrNotServed) {
		t.Errorf("WORK: got %v", err)
	}
}

// Design §2: an event that this build cannot decode stops the copy before it and
// takes it out of service; nothing is skipped, the alarm is raised again now and
// then, and the copy serves once the event can be read.
func TestUndecodableEventStops(t *testing.T) {
	log := &lines{}
	s := open(t, t.TempDir(), options(log))
	src := newSource(fleet, claims(20)...)
	src.failing = func(r events.Recorded) error {
		if r.Seq == 11 {
			return &events.UnknownError{Stream: fleet, Seq: 11, Name: "seat-claimed", Version: "2"}
		}
		return nil
	}
	project(t, s, src)
	until(t, s, "the alarm was raised again", func() bool { return log.count(badgerstore.LogStopped) >= 2 })
	if c := s.Copy(fleet); c.Position != 10 || c.State != projections.CopyOutOfService || c.Why == "" {
		t.Errorf("got %+v, want OUT_OF_SERVICE at 10 and why", c)
	}
	src.set(func() { src.failing = nil }) // a newer build would read it
	reaches(t, s, fleet, 20)
	if log.count(badgerstore.LogCurrent) != 1 {
		t.Errorf("the log does not say once that the copy serves again:\n%s", log)
	}
	if got, want := dump(t, s), rebuilt(t, src); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Schedule16, and design §2 on identity: a stream that is not the one that was
// read is an alarm however it looks; the copy stops, keeps its rows, and serves
// again when the right stream is back.
func TestSchedule16SwappedStream(t *testing.T) {
	for name, swap := range map[string]func(src *source){
		"recreated":                    func(src *source) { src.createdAt, src.log = "2031-01-01T00:00:00Z", nil },
		"restored to an older state":   func(src *source) { src.log = src.log[:10] },
		"restored, and has grown past": func(src *source) { src.log = append(src.log[:10:10], others(30)[10:]...) },
		"the newest event is gone":     func(src *source) { src.log = append(src.log[:19:19], others(21)[20:]...) },
	} {
		t.Run(name, func(t *testing.T) {
			log := &lines{}
			s := open(t, t.TempDir(), options(log))
			src := newSource(fleet, claims(20)...)
			stop := project(t, s, src)
			reaches(t, s, fleet, 20)
			stop()
			right, created := src.log, src.createdAt
			before := dump(t, s)
			src.set(func() { swap(src) })

			project(t, s, src)
			until(t, s, "the alarm is raised", func() bool { return log.count(badgerstore.LogSwapped) > 0 })
			if c := s.Copy(fleet); c.State != projections.CopyOutOfService {
				t.Errorf("got %+v", c)
			}
			err := s.View(func(v projections.View) error {
				_, err := v.Fleet()
				return err
			})
			if !errors.Is(err, projections.ErrNotServed) {
				t.Errorf("reading: got %v", err)
			}
			if got := dump(t, s); got != before {
				t.Errorf("rows changed:\n%s", got)
			}
			src.set(func() { src.log, src.createdAt = right, created })
			reaches(t, s, fleet, 20)
		})
	}
}

// others are claims with ids of their own, as another history has them.
func others(n int) []events.Recorded {
	log := claims(n)
	for i := range log {
		log[i].Meta.ID = fmt.Sprintf("other-%d", i)
	}
	return log
}

// A marker that is not where it was seen gives a swapped stream away even if the
// newest event passes; a marker of another stream is none of this one's.
func TestCheckpointVerify(t *testing.T) {
	mark := func(of events.Stream, id string) events.Event { return events.StreamMarked{Stream: of, Marker: id} }
	src := newSource(fleet, record(fleet, 1, mark(fleet, "m1")), record(fleet, 2, mark(work, "w1")), record(fleet, 3, claims(1)[0].Event))
	s := open(t, t.TempDir(), options(&lines{}))
	stop := project(t, s, src)
	reaches(t, s, fleet, 3)
	stop()
	cp, _ := s.Checkpoint(fleet)
	if cp.MarkerSeq != 1 || cp.MarkerID != "m1" {
		t.Errorf("marker: got %+v, want m1 at 1", cp.StreamIdentity)
	}
	if _, err := src.Check(t.Context(), cp); err != nil {
		t.Errorf("the same stream: got %v", err)
	}
	src.log[0].Event = mark(fleet, "m2")
	if _, err := src.Check(t.Context(), cp); !errors.Is(err, badgerstore.ErrSwapped) {
		t.Errorf("another marker: got %v", err)
	}
	lost := errors.New("no answer")
	if err := cp.Verify(badgerstore.Bounds{CreatedAt: src.createdAt, First: 1, Last: 3}, func(uint64) (events.Recorded, bool, error) {
		return events.Recorded{}, false, lost
	}); !errors.Is(err, lost) || errors.Is(err, badgerstore.ErrSwapped) {
		t.Errorf("an answer that was lost is not a swap: got %v", err)
	}
	expired := badgerstore.Checkpoint{Stream: work, Seq: 5, EventID: "WORK-5"}
	if err := expired.Verify(badgerstore.Bounds{First: 9, Last: 8}, nil); err != nil {
		t.Errorf("WORK expires by design: got %v", err)
	}
}

// Case18: a copy below the floor says so and is rebuilt from what is kept; what
// was asked of before the kept history is an error.
func TestCase18BelowTheFloor(t *testing.T) {
	log := &lines{}
	s := open(t, t.TempDir(), options(log))
	src := newSource(fleet, claims(30)...)
	stop := project(t, s, src)
	reaches(t, s, fleet, 30)
	stop()
	all := claims(130)
	src.set(func() { src.log, src.first = all, 81 })
	project(t, s, src)
	reaches(t, s, fleet, 130)
	if log.count(badgerstore.LogRebuilt) != 1 {
		t.Errorf("the log does not say once that it was rebuilt:\n%s", log)
	}
	if got, want := dump(t, s), rebuilt(t, src); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var before *projections.BeforeHistoryError
	err := s.View(func(v projections.View) error {
		_, err := v.HolderAt("seat-1", projections.AtPosition(50))
		return err
	})
	if !errors.As(err, &before) || before.First != 81 {
		t.Errorf("before the kept history: got %v", err)
	}
}

// Rows of completions that WORK has dropped go too: what is left equals a
// rebuild from what WORK still has.
func TestTrimmedStream(t *testing.T) {
	s := open(t, t.TempDir(), options(&lines{}, work))
	var all []events.Recorded
	for i := range uint64(1200) {
		all = append(all, completed(i+1, "dev", fmt.Sprint("e", i+1)))
	}
	src := newSource(work, all...)
	src.batch = 300
	stop := project(t, s, src)
	reaches(t, s, work, 1200)
	stop()
	src.set(func() { src.first = 1101 })
	project(t, s, src)
	src.append(completed(1201, "dev", "e1201"))
	reaches(t, s, work, 1201)
	if got, want := dump(t, s), rebuilt(t, src); got != want {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
}

// A log that does not answer makes the copy UNKNOWN: it serves what it has and
// does not claim to be current. One line says so, however often it is tried.
func TestUnavailableSource(t *testing.T) {
	log := &lines{}
	s := open(t, t.TempDir(), options(log))
	src := newSource(fleet, claims(5)...)
	stop := project(t, s, src)
	reaches(t, s, fleet, 5)
	stop()
	if c := s.Copy(fleet); c.State != projections.CopyUnknown {
		t.Errorf("nobody reads the log: got %+v", c)
	}
	down := errors.New("broker gone")
	src.set(func() { src.down = down })
	project(t, s, src)
	until(t, s, "it is unknown", func() bool { return s.Copy(fleet).Why == down.Error() })
	if c := s.Copy(fleet); c.State != projections.CopyUnknown || c.LagKnown {
		t.Errorf("got %+v", c)
	}
	err := s.View(func(v projections.View) error {
		if _, found, err := v.Seat("seat-1"); !found || err != nil {
			return fmt.Errorf("found %v, err %w", found, err)
		}
		return nil
	})
	if err != nil {
		t.Errorf("what is known is not served: %v", err)
	}
	src.set(func() { src.down = nil })
	src.append(claims(6)[5])
	reaches(t, s, fleet, 6)
	if n := log.count(badgerstore.LogUnavailable); n != 1 {
		t.Errorf("%d lines about the log:\n%s", n, log)
	}
}

// A batch whose sequences do not ascend, or that is of another stream, is
// refused whole.
func TestDisorderIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(log []events.Recorded){
		"back":     func(log []events.Recorded) { log[2], log[3] = log[3], log[2] },
		"repeated": func(log []events.Recorded) { log[3].Seq = log[2].Seq },
		"foreign":  func(log []events.Recorded) { log[3].Stream = work },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), options(&lines{}))
			log := claims(6)
			spoil(log)
			project(t, s, newSource(fleet, log...))
			until(t, s, "it stopped", func() bool { return s.Copy(fleet).State == projections.CopyOutOfService })
			if _, found := s.Checkpoint(fleet); found {
				t.Error("a part of the batch was applied")
			}
		})
	}
}

// A disk that is nearly full stops the copy, which goes on serving, before
// Badger could fault on its files.
func TestNearlyFullDisk(t *testing.T) {
	dir, log := t.TempDir(), &lines{}
	src := newSource(fleet, claims(5)...)
	s := open(t, dir, options(log))
	stop := project(t, s, src)
	reaches(t, s, fleet, 5)
	stop()
	s.SetMinFree(1 << 62)
	src.append(claims(6)[5])
	project(t, s, src)
	until(t, s, "it says that the disk is full", func() bool { return log.count(badgerstore.LogFull) > 0 })
	if c := s.Copy(fleet); c.Position != 5 || c.State != projections.CopyBehind || log.count(badgerstore.LogFull) != 1 {
		t.Errorf("got %+v, and in the log\n%s", c, log)
	}
	err := s.View(func(v projections.View) error {
		_, err := v.Fleet()
		return err
	})
	if err != nil {
		t.Errorf("reading: %v", err)
	}
}

// Case38, while the store runs: a damaged row answers a reader with an error and
// never with a value; the store rebuilds itself by the followers it has, all of
// them, while other readers are refused.
func TestCase38DamageFoundByReader(t *testing.T) {
	log := &lines{}
	s := open(t, t.TempDir(), options(log, fleet, work))
	src, done := newSource(fleet, claims(40)...), newSource(work, completed(1, "dev", "e1"))
	project(t, s, src)
	project(t, s, done)
	<-s.Ready()
	want := map[string]bool{}
	for range 2 { // either stream may have read first
		want[rebuilt(t, src, done)] = true
	}
	for i := range badgerstore.MaxRebuilds {
		if err := s.Corrupt("f/seat/seat-3"); err != nil {
			t.Fatal(err)
		}
		err := s.View(func(v projections.View) error {
			_, found, err := v.Seat("seat-3")
			if err == nil {
				t.Errorf("a damaged row was served, found %v", found)
			}
			return nil // a reader that swallows the error
		})
		if !errors.Is(err, projections.ErrNotServed) {
			t.Errorf("got %v", err)
		}
		until(t, s, "both copies are current again", func() bool {
			return s.Copy(fleet).State == projections.CopyCurrent && s.Copy(work).State == projections.CopyCurrent
		})
		if got := dump(t, s); !want[got] {
			t.Errorf("rebuilt differs:\n%s", got)
		}
		if n := log.count(badgerstore.LogRebuilt); n != i+1 {
			t.Errorf("%d rebuilds after %d damages:\n%s", n, i+1, log)
		}
	}
	// It never loops: damage that keeps coming back is given up on.
	if err := s.Corrupt("f/seat/seat-3"); err != nil {
		t.Fatal(err)
	}
	_ = s.View(func(v projections.View) error {
		_, _, err := v.Seat("seat-3")
		return err
	})
	until(t, s, "it is given up", func() bool { return s.Copy(fleet).State == projections.CopyOutOfService })
	if n := log.count(badgerstore.LogRebuilt); n != badgerstore.MaxRebuilds {
		t.Errorf("%d rebuilds, at most %d are allowed", n, badgerstore.MaxRebuilds)
	}
}

// Damage that the writer meets is mended in the same way.
func TestCase38DamageFoundByWriter(t *testing.T) {
	s := open(t, t.TempDir(), options(&lines{}))
	src := newSource(fleet, claims(40)...)
	project(t, s, src)
	reaches(t, s, fleet, 40)
	if err := s.Corrupt("f/head"); err != nil {
		t.Fatal(err)
	}
	src.append(claims(41)[40])
	reaches(t, s, fleet, 41)
	if got, want := dump(t, s), rebuilt(t, src); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A waiter gets the completion with the commit that has it, through whatever
// state the copy is in; others are not woken, and an end of patience says so.
func TestAwaitCompletion(t *testing.T) {
	s := open(t, t.TempDir(), options(&lines{}, work))
	src := newSource(work, completed(1, "dev", "e1"))
	type answer struct {
		c   projections.Completion
		err error
	}
	var wg sync.WaitGroup
	await := func(ctx context.Context, id string) <-chan answer {
		got := make(chan answer, 1)
		wg.Go(func() {
			c, err := s.AwaitCompletion(ctx, "dev", id)
			got <- answer{c, err}
		})
		return got
	}
	early, early2, later := await(t.Context(), "e1"), await(t.Context(), "e1"), await(t.Context(), "e2")
	project(t, s, src)
	for _, ch := range []<-chan answer{early, early2} {
		if a := <-ch; a.err != nil || a.c.Position != 1 {
			t.Errorf("e1: got %+v", a)
		}
	}
	if a := <-await(t.Context(), "e1"); a.err != nil || a.c.EventID != "e1" {
		t.Errorf("recorded already: got %+v", a)
	}
	src.append(completed(2, "dev", "e2"))
	if a := <-later; a.err != nil || a.c.Position != 2 {
		t.Errorf("e2: got %+v", a)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if a := <-await(ctx, "e3"); !errors.Is(a.err, context.DeadlineExceeded) {
		t.Errorf("never completed: got %+v", a)
	}
	wg.Wait()
}
