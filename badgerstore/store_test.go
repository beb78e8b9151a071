package badgerstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seat-tenure/tenure/badgerstore"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/projections/rowstest"
)

// Badger's rows keep the contract that the rows in memory keep.
func TestRowsContract(t *testing.T) {
	s := open(t, t.TempDir(), options(&lines{}))
	rowstest.Contract(t, s.Update, s.Read)
}

// Design §7: rows and checkpoint go on from where they stood; a reopened store
// equals a fresh one byte for byte, and what was applied before changes nothing.
func TestReopenGoesOn(t *testing.T) {
	dir := t.TempDir()
	src := newSource(fleet, claims(40)...)
	s := open(t, dir, options(&lines{}))
	stop := project(t, s, src)
	reaches(t, s, fleet, 40)
	stop()
	closed(t, s)

	src.append(claims(60)[40:]...)
	log := &lines{}
	s = open(t, dir, options(log))
	cp, found := s.Checkpoint(fleet)
	if !found || cp.Seq != 40 || cp.EventID != "FLEET-40" || cp.CreatedAt != src.createdAt || !cp.Complete {
		t.Errorf("checkpoint after reopening: got %+v, found %v", cp, found)
	}
	if c := s.Copy(fleet); c.State != projections.CopyUnknown || c.LagKnown {
		t.Errorf("before the log was read the copy is %+v, want UNKNOWN", c)
	}
	project(t, s, src)
	reaches(t, s, fleet, 60)
	if got, want := dump(t, s), rebuilt(t, src); got != want {
		t.Errorf("reopened:\n%s\nrebuilt:\n%s", got, want)
	}
	if log.String() != "" {
		t.Errorf("a sound store had something to say:\n%s", log)
	}
}

// A copy that was not read to its end is a part: it is refused, not shown as
// less than there is, also after a restart in the middle.
func TestIncompleteIsNotServed(t *testing.T) {
	dir := t.TempDir()
	src := newSource(fleet, claims(40)...)
	down := errors.New("broker gone")
	src.failing = func(r events.Recorded) error {
		if r.Seq > 20 {
			return down
		}
		return nil
	}
	for range 2 {
		s := open(t, dir, options(&lines{}))
		stop := project(t, s, src)
		until(t, s, "half is applied", func() bool { return s.Copy(fleet).Position == 20 && s.Copy(fleet).Why == down.Error() })
		if c := s.Copy(fleet); c.State != projections.CopyRebuilding {
			t.Errorf("got %+v, want REBUILDING", c)
		}
		var refusal *projections.NotServedError
		err := s.View(func(v projections.View) error {
			_, _, err := v.Seat("seat-1")
			return err
		})
		if !errors.As(err, &refusal) || refusal.State != projections.CopyRebuilding {
			t.Errorf("reading a part: got %v", err)
		}
		if isClosed(s.Ready()) {
			t.Error("ready with half of the log")
		}
		stop()
		closed(t, s)
	}
	src.set(func() { src.failing = nil })
	s := open(t, dir, options(&lines{}))
	project(t, s, src)
	<-s.Ready()
	if got, want := dump(t, s), rebuilt(t, src); got != want {
		t.Errorf("resumed:\n%s\nrebuilt:\n%s", got, want)
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// Rows of a stream that nobody follows are refused: they would look empty.
func TestUnfollowedIsNotServed(t *testing.T) {
	s := open(t, t.TempDir(), options(&lines{}))
	project(t, s, newSource(fleet, claims(3)...))
	<-s.Ready()
	err := s.View(func(v projections.View) error {
		if _, found, err := v.Seat("seat-1"); !found || err != nil {
			t.Errorf("FLEET: found %v, err %v", found, err)
		}
		_, err := v.ParkedCount("dev")
		return err
	})
	if !errors.Is(err, projections.ErrNotServed) {
		t.Errorf("DEAD: got %v", err)
	}
	if err := s.Project(t.Context(), newSource(work), work); err == nil {
		t.Error("a stream that is not the store's was followed")
	}
}

// One event larger than any transaction is applied whole: no reader ever sees a
// part of the company, and the result equals that of small transactions.
func TestLargeEvent(t *testing.T) {
	s := open(t, t.TempDir(), options(&lines{}))
	seats := s.TransactionRows() + 10
	company := events.CompanyApplied{Revision: 1, Name: "Acme", Digest: "d"}
	for i := range seats {
		company.Seats = append(company.Seats, events.RosterSeat{Handle: fmt.Sprintf("seat-%06d", i), AgentID: "a"})
	}
	small := claims(5)
	src := newSource(fleet, small...)
	project(t, s, src)
	reaches(t, s, fleet, 5)

	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan string, 1)
	go func() { // reads all the time the event is applied
		for ctx.Err() == nil {
			err := s.View(func(v projections.View) error {
				f, err := v.Fleet()
				_, last, err2 := v.Seat(company.Seats[seats-1].Handle)
				if whole := f.Seats == seats && f.Position == 6 && last; err == nil && err2 == nil && !whole && (f.Seats != 0 || f.Position != 5 || last) {
					return fmt.Errorf("a reader saw %d of %d seats at position %d", f.Seats, seats, f.Position)
				}
				return errors.Join(err, err2)
			})
			if err != nil {
				watched <- err.Error()
				return
			}
		}
		watched <- ""
	}()
	src.append(record(fleet, 6, company))
	reaches(t, s, fleet, 6)
	cancel()
	if saw := <-watched; saw != "" {
		t.Error(saw)
	}
	want := rowstest.Memory{}
	for _, r := range src.log {
		if err := projections.Apply(want, r); err != nil {
			t.Fatal(err)
		}
	}
	if got := onlyRows(dump(t, s)); got != want.Dump() {
		t.Errorf("%d bytes of rows, want %d", len(got), len(want.Dump()))
	}
}

// onlyRows leaves out the store's own.
func onlyRows(dump string) string {
	var b strings.Builder
	for line := range strings.Lines(dump) {
		if !strings.HasPrefix(line, "!") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// A batch larger than a transaction is split, with the checkpoint in each part;
// the rows are those of one event at a time.
func TestBatchIsSplit(t *testing.T) {
	s := open(t, t.TempDir(), options(&lines{}))
	src := newSource(fleet, claims(s.TransactionRows()/5)...) // six rows and more each
	src.batch = len(src.log)
	project(t, s, src)
	<-s.Ready()
	single := newSource(fleet, src.log...)
	single.batch = 100
	if got, want := dump(t, s), rebuilt(t, single); got != want {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
}

// Another schema version, another fleet, a lost row, a torn event, and starts
// that died while opening: each is rebuilt with one line that says why, and the
// next opening has nothing to say.
func TestUnfitStoreIsRebuilt(t *testing.T) {
	for name, spoil := range map[string]func(dir string, s *badgerstore.Store) error{
		"schema 0, this build has": func(_ string, s *badgerstore.Store) error { return s.SetSchema(0, "acme") },
		`of the fleet \"other\"`:   func(_ string, s *badgerstore.Store) error { return s.SetSchema(projections.SchemaVersion, "other") },
		"others than the":          func(_ string, s *badgerstore.Store) error { return s.Lose("f/seat/seat-3") },
		"does not match its seal":  func(_ string, s *badgerstore.Store) error { return s.Corrupt("f/seat/seat-3") },
		"applied in part":          func(_ string, s *badgerstore.Store) error { return s.Tear() },
		"the last 2 starts ended while": func(dir string, _ *badgerstore.Store) error {
			return os.WriteFile(filepath.Join(dir, badgerstore.OpeningFile), []byte("2"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			src := newSource(fleet, claims(30)...)
			s := open(t, dir, options(&lines{}))
			stop := project(t, s, src)
			<-s.Ready()
			want := dump(t, s)
			stop()
			if err := spoil(dir, s); err != nil {
				t.Fatal(err)
			}
			closed(t, s)

			log := &lines{}
			s = open(t, dir, options(log))
			if log.count(badgerstore.LogRebuilt) != 1 || !strings.Contains(log.String(), name) || !strings.Contains(log.String(), dir) {
				t.Errorf("the log does not say once what, where and why:\n%s", log)
			}
			if _, found := s.Checkpoint(fleet); found {
				t.Error("a rebuilt store kept a checkpoint")
			}
			stop = project(t, s, src)
			<-s.Ready()
			if got := dump(t, s); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			stop()
			closed(t, s)
			log = &lines{}
			open(t, dir, options(log))
			if log.String() != "" {
				t.Errorf("the next start had something to say:\n%s", log)
			}
		})
	}
}

// Case37, as far as the store goes: a second opener waits a bounded time and
// says which directory is in use by whom; a lock file left behind is no obstacle.
func TestCase37StoreInUse(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, options(&lines{}))
	_, err := badgerstore.Open(t.Context(), dir, options(&lines{}))
	if err == nil || !strings.Contains(err.Error(), dir+" is in use by another process (pid ") {
		t.Fatalf("second opener: got %v", err)
	}
	closed(t, s)
	if _, err := os.Stat(filepath.Join(dir, "LOCK")); err != nil {
		t.Fatalf("no lock file was left behind: %v", err)
	}
	open(t, dir, options(&lines{}))
}

// A directory that is not the store's loses nothing when the store is wiped.
func TestWipeLeavesOthersFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"notes.txt", "MANIFEST"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("not Badger's"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := &lines{}
	open(t, dir, options(log))
	if data, err := os.ReadFile(filepath.Join(dir, "notes.txt")); string(data) != "not Badger's" || log.count(badgerstore.LogRebuilt) != 1 {
		t.Errorf("got %q, %v, and in the log\n%s", data, err, log)
	}
}

// A disk without room refuses to open, in a sentence that says what to do.
func TestNoRoomToOpen(t *testing.T) {
	opts := options(&lines{})
	opts.MinFree = 1 << 62
	_, err := badgerstore.Open(t.Context(), t.TempDir(), opts)
	if err == nil || !strings.Contains(err.Error(), "make room") {
		t.Errorf("got %v", err)
	}
}

// After Close everything says so, and nobody waits for ever.
func TestClosed(t *testing.T) {
	s := open(t, t.TempDir(), options(&lines{}, work))
	stop := project(t, s, newSource(work))
	<-s.Ready()
	waiting := make(chan error, 1)
	go func() {
		_, err := s.AwaitCompletion(t.Context(), "dev", "e1")
		waiting <- err
	}()
	stop()
	closed(t, s)
	if err := <-waiting; !errors.Is(err, badgerstore.ErrClosed) {
		t.Errorf("a waiter: got %v", err)
	}
	if err := s.View(func(projections.View) error { return nil }); !errors.Is(err, badgerstore.ErrClosed) {
		t.Errorf("a reader: got %v", err)
	}
	if err := s.Project(t.Context(), newSource(work), work); !errors.Is(err, badgerstore.ErrClosed) {
		t.Errorf("a follower: got %v", err)
	}
}
