package seat_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// TestLogNames proves under which names, at which level and with which keys the
// host tells what happens: operators' alarms are made from them (O1, P14).
func TestLogNames(t *testing.T) {
	log := &seattest.Records{}
	for _, scene := range []func(*testing.T, *seattest.Fleet, *seattest.Records){
		sceneMoves, sceneOutage, sceneUndead, sceneRefusals, sceneClash, sceneOlder,
	} {
		synctest.Test(t, func(t *testing.T) { scene(t, seattest.New(t, ttl), log) })
	}
	seattest.Golden(t, "testdata/logs.txt", log.Shape())
}

func sceneMoves(_ *testing.T, f *seattest.Fleet, log *seattest.Records) {
	var behind atomic.Bool
	f.Seats(handles(4)...)
	a := f.Start(seattest.Config{ID: "a", Log: log, Behind: behind.Load})
	holds(f, []*seattest.Node{a}, 4)
	b := f.Start(seattest.Config{ID: "b", Log: log})
	holds(f, []*seattest.Node{a, b}, 2, 2)
	b.Stop()
	behind.Store(true)
	f.Advance(10 * time.Second)
	f.Roster(events.RosterSeat{Handle: "s00", Node: "z"}, events.RosterSeat{Handle: "s01"})
	f.Advance(10 * time.Second)
}

func sceneOutage(_ *testing.T, f *seattest.Fleet, log *seattest.Records) {
	f.Seats("dev")
	a := f.Start(seattest.Config{ID: "a", Log: log})
	holds(f, []*seattest.Node{a}, 1)
	a.Conn.Faults.CutOff(true)
	f.Until(func() bool { return !admitted(a, "dev") })
	a.Conn.Faults.CutOff(false)
	f.Until(func() bool { return admitted(a, "dev") })
	a.Conn.Faults.CutOff(true)
	f.Advance(3 * ttl)
}

func sceneUndead(_ *testing.T, f *seattest.Fleet, log *seattest.Records) {
	hook := &hooks{}
	hook.on("down tools", func(context.Context, string) error { return errors.New("alive") })
	f.Seats("dev")
	a := f.Start(seattest.Config{ID: "a", Log: log, Stages: hook.stages("tools")})
	holds(f, []*seattest.Node{a}, 1)
	f.Seats()
	f.Advance(25 * heartbeat)
	hook.on("down tools", nil)
	f.Advance(heartbeat)
}

func sceneRefusals(t *testing.T, f *seattest.Fleet, log *seattest.Records) {
	hook := &hooks{}
	hook.on("up tools", func(_ context.Context, handle string) error {
		if handle == "bad" {
			return errors.New("no such program")
		}
		return nil
	})
	self := f.Boot("a")
	dropped := commands.New(seattest.NewLog(f.Conn), f.Subjects, self)
	never := func(uint64) (time.Duration, bool) { return 0, false }
	if _, err := dropped.Claim(t.Context(), events.SeatLease("dev"), commands.Claim{TTL: ttl, Protocol: seat.Protocol}, never); err != nil {
		t.Fatal(err)
	}
	a := f.Start(seattest.Config{ID: "a", Log: log, Reuse: self, Stages: hook.stages("tools")})
	a.Conn.Faults.DropWrite(events.StreamFleet, f.Subjects.Host("ops"), 60)
	f.Seats("dev", "bad", "ops")
	f.Advance(time.Minute)
}

func sceneClash(_ *testing.T, f *seattest.Fleet, log *seattest.Records) {
	f.Seats("dev")
	a := f.Start(seattest.Config{ID: "a", Log: log})
	holds(f, []*seattest.Node{a}, 1)
	f.Start(seattest.Config{ID: "a", Log: log})
	f.Advance(10 * time.Second)
}

func sceneOlder(_ *testing.T, f *seattest.Fleet, log *seattest.Records) {
	f.Seats("dev")
	a := f.Start(seattest.Config{ID: "a", Protocol: older, Log: log})
	holds(f, []*seattest.Node{a}, 1)
	b := f.Start(seattest.Config{ID: "b", Log: log})
	f.Seats("dev", "ops")
	f.Advance(10 * time.Second)
	b.Stop() // else it is chance whether the other hands its seats to it at the end
}
