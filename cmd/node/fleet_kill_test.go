package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/audit"
	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/events"
)

// echoFile writes a company of n seats that echo to a file.
func echoFile(t *testing.T, n int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "company.yaml")
	if err := os.WriteFile(path, echoes(n, ""), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// exportOf is FLEET as an export of the node has it.
func exportOf(t *testing.T, p *process) (fleet []events.Recorded) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "history.jsonl")
	p.must(nil, "event", "export", "--file", path)
	p.must(nil, "audit", "--file", path)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := audit.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	subjects, err := events.NewSubjects(natstest.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	for {
		entry, err := in.Next()
		if errors.Is(err, io.EOF) {
			return fleet
		}
		if err != nil {
			t.Fatal(err)
		}
		if entry.Message.Stream != events.StreamFleet {
			continue
		}
		r, err := events.Decode(subjects, entry.Message)
		if err != nil {
			t.Fatal(err)
		}
		fleet = append(fleet, r)
	}
}

// gap is the longest time in which the log took nothing, between two moments. A
// broker that dies with its node takes a few seconds to be succeeded, in which no
// position of the log can be read and thus nobody's lease be seen to age.
func gap(fleet []events.Recorded, from, to time.Time) (longest time.Duration) {
	before := from
	for _, r := range fleet {
		if r.At.After(from) && r.At.Before(to) {
			longest, before = max(longest, r.At.Sub(before)), r.At
		}
	}
	return longest
}

// judgeLossAndReturn reads from the log what became of a fleet that was even, lost
// the node that was killed, and had it back: each of its seats was claimed within
// TTL + 2 s of the last renewal that the log has of it, nothing else moved; once
// it was back the spread was even again within a minute; and no seat moved twice
// for either of the two.
func judgeLossAndReturn(t *testing.T, fleet []events.Recorded, node string, killed time.Time, ttl time.Duration) {
	t.Helper()
	type tenure struct {
		owner events.Incarnation
		last  time.Time
	}
	now, lost, joined := map[string]tenure{}, map[string]int{}, map[string]int{}
	var returned, settled time.Time
	var worst time.Duration
	owned := 0
	for _, r := range fleet {
		switch e := r.Event.(type) {
		case events.LeaseRenewed:
			now[e.Lease.ID] = tenure{e.Owner, r.At}
		case events.LeaseClaimed:
			if e.Lease.Kind == events.KindNode && e.Lease.ID == node && r.At.After(killed) {
				returned = r.At
			}
			if e.Lease.Kind != events.KindSeat {
				continue
			}
			before := now[e.Lease.ID]
			now[e.Lease.ID] = tenure{e.Owner, r.At}
			switch {
			case !r.At.After(killed):
			case returned.IsZero():
				lost[e.Lease.ID]++
				owned++
				if before.owner.NodeID() != node {
					t.Errorf("%s moved from %s, which was not killed", e.Lease.ID, before.owner)
				}
				worst = max(worst, r.At.Sub(before.last))
			default:
				joined[e.Lease.ID]++
				settled = r.At
			}
		}
	}
	limit := ttl + 2*time.Second
	if dead := gap(fleet, killed, killed.Add(ttl)); dead > 4*time.Second {
		t.Logf("the log took nothing for %v: its leader died with the node", dead)
		limit += dead
	}
	t.Logf("%d seats of the killed node were claimed, %v after their last renewal at worst; even again %v after its return", owned, worst, settled.Sub(returned))
	if owned == 0 || worst > limit {
		t.Errorf("%d seats were claimed, up to %v after their last renewal, want at most %v", owned, worst, limit)
	}
	if took := settled.Sub(returned); returned.IsZero() || took > time.Minute {
		t.Errorf("the spread was even %v after the node's return", took)
	}
	for when, moved := range map[string]map[string]int{"loss": lost, "return": joined} {
		for handle, n := range moved {
			if n > 1 {
				t.Errorf("%s was claimed %d times after the node's %s", handle, n, when)
			}
		}
	}
}
