package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/events"
)

// waitingScript is effectScript for mail that stays in its turn until somebody
// makes the file GO beside the effects.
const waitingScript = `read -r turn || exit 1
printf '%s\n' "$turn" >>"$1"
case $turn in *'"waits":true'*) until [ -e "$1.go" ]; do sleep 0.05; done ;; esac
echo '{"type":"done"}'
`

// doneBy lists what the seat's turns were given, in the order in which they began.
func (w effectDir) doneBy(handle string) (ids []string) {
	w.t.Helper()
	text, err := os.ReadFile(w.path())
	if err != nil {
		w.t.Fatal(err)
	}
	for in := bufio.NewScanner(bytes.NewReader(text)); in.Scan(); {
		var e effect
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			w.t.Fatalf("%v: %s", err, in.Text())
		}
		if e.Seat == handle {
			ids = append(ids, e.Events[0].ID)
		}
	}
	return ids
}

// TestCase23ProcessExits: a process that has worked on one of five messages, and is in
// the turn on the next, is killed, told to stop, and told to stop at once. After each
// the broker has no consumer of mail, whatever was not worked on is there, and the
// next process works on it in order, and on nothing else again than the turn that was
// cut off (case 23, U2, H4).
func TestCase23ProcessExits(t *testing.T) {
	t.Parallel()
	brokers := natstest.R1(t)
	store := brokers.Store(0)
	shell, work := outsider(store), newEffects(t, waitingScript)
	company := work.company(3)
	goOn := func() { work.write("effects.go", "") }
	for i, way := range []struct {
		name    string
		leave   func(p *process)
		settled int // of the five
		again   int // turns on the second message
	}{
		{"killed", (*process).kill, 1, 2},
		{"told to stop", func(p *process) {
			p.signal(syscall.SIGTERM)
			p.await(30*time.Second, `msg=node_stopping( |$)`)
			goOn() // the turn in flight ends
			<-p.done
		}, 2, 1},
		{"told to stop at once", func(p *process) {
			p.signal(syscall.SIGTERM)
			p.await(30*time.Second, `msg=node_stopping( |$)`)
			p.signal(syscall.SIGTERM)
			<-p.done
		}, 1, 2},
	} {
		p := startFleetNode(t, "a", brokers.Server(0).NodeURL(), company)
		handle := seatName(i)
		var ids []string
		for n, data := range []string{`{}`, `{"waits":true}`, `{}`, `{}`, `{}`} {
			ids = append(ids, fmt.Sprintf("%s-e%d", handle, n+1))
			if err := sendTold(t.Context(), shell, handle, ids[n], data); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, 30*time.Second, "it is in the second turn", func() bool { return slices.Equal(work.doneBy(handle), ids[:2]) })
		way.leave(p)

		if n := brokers.Consumers(t, broker.Config{Prefix: natstest.Prefix}, events.StreamMail); n > 0 {
			t.Errorf("%s: MAIL has %d consumers", way.name, n)
		}
		subject := store.Subjects().Mail(handle, events.Inbox)
		kept, err := store.Stream(events.StreamMail).Subjects(t.Context(), subject)
		if err != nil || int(kept[subject]) < len(ids)-way.settled || !slices.Equal(work.doneBy(handle), ids[:2]) {
			t.Errorf("%s: %d of 5 messages are kept, turns began on %q: %v", way.name, kept[subject], work.doneBy(handle), err)
		}
		goOn()
		next := startFleetNode(t, "a", brokers.Server(0).NodeURL(), company)
		eventually(t, 30*time.Second, "all five are worked on", func() bool {
			return !slices.ContainsFunc(ids, func(id string) bool {
				_, ok, err := shell.Completed(t.Context(), handle, id)
				return err != nil || !ok
			})
		})
		want := slices.Concat(ids[:1], slices.Repeat(ids[1:2], way.again), ids[2:])
		if got := work.doneBy(handle); !slices.Equal(got, want) {
			t.Errorf("%s: turns began on %q, want %q", way.name, got, want)
		}
		if code := next.stop(); code != exitFine {
			t.Errorf("%s: the next process stopped with exit code %d", way.name, code)
		}
		if err := os.Remove(work.path() + ".go"); err != nil {
			t.Fatal(err)
		}
	}
}
