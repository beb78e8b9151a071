package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat/seattest"
	"github.com/seat-tenure/tenure/turn"
)

// TestLogNames proves under which names, at which level and with which keys the
// life of a turn is told: operators' alarms are made from them (O1).
func TestLogNames(t *testing.T) {
	log := &seattest.Records{}
	for _, scene := range []func(*testing.T) *seattest.Records{
		sceneOutcomes, sceneParked, sceneFenced, sceneLedger, sceneSwapped, sceneGone, sceneNoAgent,
	} {
		synctest.Test(t, func(t *testing.T) { log.Merge(scene(t)) })
	}
	seattest.Golden(t, "testdata/logs.txt", log.Shape())
}

func sceneOutcomes(t *testing.T) *seattest.Records {
	f := fleetOf(t)
	a := &agent{}
	a.set(func(ctx context.Context, req turn.Request, calls turn.Calls) (turn.Reply, error) {
		switch id := req.Events[0].ID; {
		case id == "panics":
			panic("boom")
		case id == "acts":
			_, _ = calls.Call(ctx, "1", turn.ToolSend, json.RawMessage(`{"to":"ops"}`))
			return turn.Reply{}, errors.New("no")
		case id == "fails" && req.Attempt == 1:
			return turn.Reply{}, errors.New("no")
		}
		return turn.Reply{JSON: []byte(`{}`)}, nil
	})
	d := sit(t, f, a)
	send(t, f, "works", "works", "panics", "acts", "fails")
	sendOf(t, f, "newsletter", "n1")
	f.Advance(10 * time.Second)
	return d.log
}

func sceneParked(t *testing.T) *seattest.Records {
	f := fleetOf(t)
	d := sit(t, f, &agent{})
	w := events.Write{Subject: f.Subjects.Mail("dev", events.Inbox), Header: events.Header{}, Data: []byte("{")}
	if _, err := f.Conn.Stream(events.StreamMail).Append(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	f.Advance(time.Second)
	return d.log
}

func sceneFenced(t *testing.T) *seattest.Records {
	f := fleetOf(t)
	a := &agent{}
	started := make(chan struct{}, 1)
	a.set(func(ctx context.Context, _ turn.Request, _ turn.Calls) (turn.Reply, error) {
		started <- struct{}{}
		<-ctx.Done()
		return turn.Reply{}, context.Cause(ctx)
	})
	d := sit(t, f, a)
	zombie := sit(t, f, &agent{}) // has the mailbox now, and loses it
	next := sit(t, f, a)
	next.admit(errStale)
	send(t, f, "e1")
	f.Advance(time.Second)
	next.admit(nil)
	<-started
	next.kill()
	last := sit(t, f, &agent{})
	f.Advance(time.Second)
	all := &seattest.Records{}
	all.Merge(d.log, zombie.log, next.log, last.log)
	return all
}

func sceneLedger(t *testing.T) *seattest.Records {
	f := fleetOf(t)
	broken := errors.New("no")
	d := sit(t, f, &agent{}, func(w *turn.Worker) { w.Ledger = brokenLedger{w.Ledger, broken, broken} })
	send(t, f, "e1")
	f.Advance(time.Second)
	d.conn.Faults.Refuse(events.StreamCursor, f.Subjects.Cursor("dev", events.Inbox), 1, broken)
	send(t, f, "e2")
	f.Advance(time.Second)
	return d.log
}

func sceneSwapped(t *testing.T) *seattest.Records {
	f := fleetOf(t)
	d := sit(t, f, &agent{})
	send(t, f, "e1")
	f.Advance(time.Second)
	f.Conn.Recreate(events.StreamMail)
	send(t, f, "e2")
	f.Advance(time.Second)
	return d.log
}

func sceneGone(t *testing.T) *seattest.Records {
	f := fleetOf(t)
	a := &agent{}
	a.set(failFor("bad", 5))
	d := sit(t, f, a)
	send(t, f, "bad")
	f.Advance(100 * time.Millisecond)
	if err := f.Conn.Stream(events.StreamMail).Purge(t.Context(), f.Subjects.Mail("dev", events.Inbox), 100); err != nil {
		t.Fatal(err)
	}
	f.Advance(time.Minute)
	if c := cursor(t, f); len(c.Open) > 0 {
		t.Errorf("mail that is gone is still open: %+v", c)
	}
	return d.log
}

func sceneNoAgent(t *testing.T) *seattest.Records {
	f := fleetOf(t)
	a := &agent{}
	a.leave(errors.New("no such role"))
	d := sit(t, f, a)
	send(t, f, "e1")
	f.Advance(time.Second)
	return d.log
}
