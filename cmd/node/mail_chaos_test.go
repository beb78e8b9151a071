package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
)

// effectScript is a runner whose work is outside the fleet: it appends the turn,
// as it was given it, to a file in one write. Slow mail keeps it for a while between
// that and its answer, where a node is to be killed.
const effectScript = `read -r turn || exit 1 # the node died before it had said what to do
printf '%s\n' "$turn" >>"$1"
case $turn in *'"slow":true'*) sleep 0.3 ;; esac
echo '{"type":"done"}'
`

// effect is one line of that file.
type effect struct {
	Seat    string `json:"seat"`
	AgentID string `json:"agent_id"`
	Epoch   uint64 `json:"epoch"`
	WorkKey string `json:"work_key"`
	Attempt int    `json:"attempt"`
	Events  []struct {
		ID string `json:"id"`
	} `json:"events"`
}

// effectCompany is a company of n seats that run the script, which writes to the
// file that is returned.
func effectCompany(t *testing.T, n int) (company, effects string) {
	t.Helper()
	w := newEffects(t, effectScript)
	return w.company(n), w.path()
}

// effectDir is where companies whose work is an effect have their program and
// what it did.
type effectDir struct {
	t   *testing.T
	dir string
}

func newEffects(t *testing.T, script string) effectDir {
	t.Helper()
	w := effectDir{t, t.TempDir()}
	w.write("work.sh", script)
	w.write("effects", "")
	return w
}

func (w effectDir) write(name, content string) (path string) {
	w.t.Helper()
	path = filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// path is the file that the program writes its effects to.
func (w effectDir) path() string { return filepath.Join(w.dir, "effects") }

// company is the document of a company of n such seats.
func (w effectDir) company(n int) (path string) {
	w.t.Helper()
	var doc strings.Builder
	doc.WriteString("company: {name: Acme}\nroles:\n")
	for i := range n {
		fmt.Fprintf(&doc, "  - {handle: %s, title: Clerk, runner: {exec: [/bin/sh, %q, %q]}}\n", seatName(i), filepath.Join(w.dir, "work.sh"), w.path())
	}
	return w.write(fmt.Sprintf("company-%d.yaml", n), doc.String())
}

// effectsOf reads what was done, by event id.
func effectsOf(t *testing.T, path string) map[string][]effect {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]effect{}
	for in := bufio.NewScanner(bytes.NewReader(text)); in.Scan(); {
		var e effect
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			t.Errorf("an effect that is none: %v: %s", err, in.Text())
			continue
		}
		for _, ev := range e.Events {
			all[ev.ID] = append(all[ev.ID], e)
		}
	}
	return all
}

// sendOver sends so many mails to the seats, evenly over a time, in the background.
// wait returns the seat of each by event id.
func sendOver(t *testing.T, shell *commands.Shell, mails, seats int, over time.Duration) (wait func() map[string]string) {
	t.Helper()
	sent := make(map[string]string, mails)
	ids := make(chan int)
	var sending sync.WaitGroup
	for i := range mails {
		sent[fmt.Sprintf("m-%05d", i)] = seatName(rand.IntN(seats))
	}
	for range 8 {
		sending.Go(func() {
			for i := range ids {
				id := fmt.Sprintf("m-%05d", i)
				m := events.Mail{
					Handle: sent[id], Mailbox: events.Inbox, ID: id, Type: events.TaskAssigned, Time: time.Now().UTC(),
					Data: fmt.Appendf(nil, `{"slow":%v}`, i%5 == 0),
				}
				if _, err := shell.Send(t.Context(), m); err != nil {
					t.Errorf("send %s: %v", id, err)
				}
			}
		})
	}
	sending.Go(func() {
		defer close(ids)
		began := time.Now()
		for i := range mails {
			<-time.After(time.Until(began.Add(over * time.Duration(i) / time.Duration(mails))))
			ids <- i
		}
	})
	t.Cleanup(sending.Wait)
	return func() map[string]string { sending.Wait(); return sent }
}

// TestMailUnderChaos: mail to 200 seats on three nodes that are killed and
// restarted, stopped past their TTL and resumed, drained and let in again, at
// random. Its work is an effect outside. Afterwards the effect of each piece of
// mail is there once; or twice, where a node was killed or stopped between effect
// and ledger, and then it is reported. None is lost, none is parked, none is
// pending three TTLs after the last fault (at full count: longer than its backlog
// takes), and the history audits clean (D3, D4, K1, U2, W1).
func TestMailUnderChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a fleet, over and over")
	}
	const nodes, seats = 3, 200
	mails, over := times(1000, 10_000), time.Duration(times(20, 60))*time.Second
	seed := rand.Uint64()
	if given := os.Getenv("TENURE_SEED"); given != "" {
		seed, _ = strconv.ParseUint(given, 10, 64)
	}
	t.Logf("TENURE_SEED=%d", seed)
	brokers := natstest.R1(t)
	company, effects := effectCompany(t, seats)
	f := startChaosFleet(t, seed, nodes, seats, brokers.Server(0).NodeURL(), company)
	store := brokers.Store(0)
	shell := outsider(store)

	wait := sendOver(t, shell, mails, seats, over)
	for end := time.Now().Add(over); time.Now().Before(end); {
		<-time.After(time.Duration(300+f.rng.IntN(700)) * time.Millisecond)
		f.disturb()
	}
	sent := wait()
	last := f.heal()
	backlog, pace := backlogOf(t, store, mails, over)
	settled := f.awaitSettled(sent, shell, last.Add(2*time.Minute))
	t.Logf("%d mails, %v; nothing was pending %v after the last fault; at the start all seats were attached in %v",
		len(sent), f.done, settled.Sub(last), f.first)
	// A fleet may have lost every seat by then. One that needed longer than a TTL to
	// take them at its start is on a machine that is no yardstick.
	limit := max(3*f.ttl, 2*f.ttl+3*f.first)
	if fullCounts {
		// A program a turn is more than two processors can start: what is left is worked
		// off at the pace there was under the faults, and none of it stands still.
		limit += pace
		t.Logf("%d mails were not done when the last fault was over: %v at the pace of before", backlog, pace)
	}
	if settled.Sub(last) > limit {
		t.Errorf("mail was pending %v after the last fault, want at most %v", settled.Sub(last), limit)
	}
	tenures, overlaps := spans(historyOf(t, store, events.StreamFleet), f.ttl)
	for _, overlap := range overlaps {
		t.Error(overlap)
	}
	j := chaosJudge{f: f, tenures: tenures, effects: effectsOf(t, effects), reported: f.reported(), done: map[string][]events.TurnCompleted{}}
	for _, r := range historyOf(t, store, events.StreamWork, events.StreamDead) {
		switch e := r.Event.(type) {
		case events.TurnCompleted:
			j.done[e.EventID] = append(j.done[e.EventID], e)
		case events.MailParked:
			t.Errorf("mail %s to %s was parked: %s", e.EventID, e.Handle, e.Reason)
		}
	}
	repeated := 0
	for id, handle := range sent {
		j.judge(id, handle)
		if len(j.effects[id]) > 1 {
			repeated++
		}
	}
	t.Logf("%d effects came twice, each between effect and ledger of a node that was killed or stopped", repeated)
	audited(t, f.nodes[0].p.url)
}

// backlogOf is how many of the mails have no completion yet, and how long they take
// at the pace at which the others were completed.
func backlogOf(t *testing.T, store broker.Store, mails int, over time.Duration) (left int, takes time.Duration) {
	t.Helper()
	done, err := store.Stream(events.StreamWork).Subjects(t.Context(), store.Subjects().Completions())
	if err != nil {
		t.Fatal(err)
	}
	left = mails - len(done)
	return left, over * time.Duration(left) / time.Duration(max(len(done), 1))
}

// awaitSettled waits until all mail is completed and none is pending, and returns
// when that was seen.
func (f *chaosFleet) awaitSettled(sent map[string]string, shell *commands.Shell, end time.Time) time.Time {
	f.t.Helper()
	left := make(map[string]string, len(sent))
	for id, handle := range sent {
		left[id] = handle
	}
	for {
		for id, handle := range left {
			if _, ok, err := shell.Completed(f.t.Context(), handle, id); err == nil && ok {
				delete(left, id)
			} else if len(left) < 20 {
				continue
			} else {
				break
			}
		}
		pending := 0
		if len(left) == 0 {
			var l mailboxList
			f.nodes[0].p.must(&l, "mailbox", "ls", "--limit", "500", "-o", "json")
			for _, m := range l.Mailboxes {
				if m.Pending == nil {
					pending++
					continue
				}
				pending += *m.Pending
			}
			if pending == 0 {
				return time.Now()
			}
		}
		if time.Now().After(end) {
			f.t.Fatalf("%d mails have no completion and %d are pending, long after the last fault: %v", len(left), pending, left)
		}
		<-time.After(50 * time.Millisecond)
	}
}

var rerunLine = regexp.MustCompile(`msg=turn_rerun_after_unfinished_attempt .*event=(\S+)`)

// reported are the events whose work was logged as run again.
func (f *chaosFleet) reported() map[string]bool {
	all := map[string]bool{}
	for _, n := range f.nodes {
		for _, log := range n.logs {
			lines, _ := log.from(0)
			for _, line := range lines {
				if m := rerunLine.FindStringSubmatch(line); m != nil {
					all[m[1]] = true
				}
			}
		}
	}
	return all
}

// chaosJudge says what may have become of a piece of mail.
type chaosJudge struct {
	f        *chaosFleet
	tenures  map[string][]*tenureSpan
	effects  map[string][]effect
	done     map[string][]events.TurnCompleted
	reported map[string]bool
}

func (j *chaosJudge) judge(id, handle string) {
	t, all, done := j.f.t, j.effects[id], j.done[id]
	if len(done) != 1 {
		t.Errorf("%s to %s has %d completions", id, handle, len(done))
		return
	}
	slices.SortFunc(all, func(a, b effect) int { return int(a.Epoch) - int(b.Epoch) })
	if len(all) == 0 {
		t.Errorf("%s to %s is completed, and its effect is not there: %+v", id, handle, done[0])
		return
	}
	for i, e := range all[1:] {
		before := all[i]
		switch {
		case e.WorkKey != before.WorkKey:
			t.Errorf("%s has two work keys: %+v", id, all)
		case e.Epoch == before.Epoch:
			t.Errorf("%s was done twice in one tenure: %+v", id, all)
		case !j.cut(handle, before.Epoch):
			t.Errorf("%s was done again after a tenure in which its node was neither killed nor stopped: %+v", id, all)
		case !j.reported[id]:
			t.Errorf("%s was done again, and nobody logged it: %+v", id, all)
		}
	}
	// A node that goes on after its time may still write what it had done: then the
	// completion is the earlier tenure's.
	if last := all[len(all)-1]; len(all) > 1 && done[0].Attempts < 2 && done[0].Epoch == last.Epoch {
		t.Errorf("%s was done %d times, and its completion says %d attempts", id, len(all), done[0].Attempts)
	}
	if len(all) > 2 {
		t.Logf("%s was cut between effect and ledger %d times: %+v", id, len(all)-1, all)
	}
}

// cut says whether the node of that tenure was killed or stopped in it.
func (j *chaosJudge) cut(handle string, epoch uint64) bool {
	known := j.tenures[handle]
	if epoch < 1 || epoch > uint64(len(known)) {
		j.f.t.Errorf("an effect of %s at epoch %d, of %d", handle, epoch, len(known))
		return false
	}
	span := known[epoch-1]
	for _, n := range j.f.nodes {
		if n.id == span.owner.NodeID() {
			return n.struckIn(span.claimed, span.superseded)
		}
	}
	return false
}
