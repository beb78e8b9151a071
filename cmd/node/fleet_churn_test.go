package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/events"
)

// tenureSpan is one tenure of a seat, as the log has it.
type tenureSpan struct {
	epoch      uint64
	owner      events.Incarnation
	claimed    time.Time
	last       time.Time // of its newest event
	released   bool
	superseded time.Time // when the next one was claimed; zero for the newest
}

// spans reads the tenures of seats from a history and names every place where two
// of a seat overlap: a claim over one that was neither released nor
// unseen for the TTL, an event of one after the next was claimed, an epoch that
// is not the next. It shares no code with the product's own audit.
func spans(all []events.Recorded, ttl time.Duration) (tenures map[string][]*tenureSpan, overlaps []string) {
	tenures = map[string][]*tenureSpan{}
	wrong := func(format string, args ...any) { overlaps = append(overlaps, fmt.Sprintf(format, args...)) }
	touch := func(r events.Recorded, handle string, epoch uint64, released bool) {
		known := tenures[handle]
		if len(known) == 0 || known[len(known)-1].epoch != epoch {
			wrong("FLEET %d: %s of %s at epoch %d, which is not its newest", r.Seq, events.Name(r.Event), handle, epoch)
			return
		}
		now := known[len(known)-1]
		if now.released {
			wrong("FLEET %d: %s of %s at epoch %d after it was released", r.Seq, events.Name(r.Event), handle, epoch)
		}
		now.last, now.released = r.At, now.released || released
	}
	for _, r := range all {
		switch e := r.Event.(type) {
		case events.LeaseClaimed:
			if e.Lease.Kind != events.KindSeat {
				continue
			}
			known := tenures[e.Lease.ID]
			if want := uint64(len(known) + 1); e.Epoch != want {
				wrong("FLEET %d: %s is claimed at epoch %d, want %d", r.Seq, e.Lease, e.Epoch, want)
			}
			if len(known) > 0 {
				before := known[len(known)-1]
				if unseen := r.At.Sub(before.last); !before.released && unseen < ttl {
					wrong("FLEET %d: %s is claimed by %s over %s, unseen for %v", r.Seq, e.Lease, e.Owner, before.owner, unseen)
				}
				before.superseded = r.At
			}
			tenures[e.Lease.ID] = append(known, &tenureSpan{epoch: e.Epoch, owner: e.Owner, claimed: r.At, last: r.At})
		case events.LeaseRenewed:
			if e.Lease.Kind == events.KindSeat {
				touch(r, e.Lease.ID, e.Epoch, false)
			}
		case events.LeaseReleased:
			if e.Lease.Kind == events.KindSeat {
				touch(r, e.Lease.ID, e.Epoch, true)
			}
		case events.SeatEstablished:
			touch(r, e.Handle, e.Epoch, false)
		}
	}
	return tenures, overlaps
}

var turnLine = regexp.MustCompile(`msg=turn_started seat=(\S+) epoch=(\d+) `)

// turnsWithin requires that each turn that was logged as started was started
// while its tenure stood, and returns how many there were.
func turnsWithin(t *testing.T, tenures map[string][]*tenureSpan, logs ...*logLines) (n int) {
	t.Helper()
	for _, log := range logs {
		lines, _ := log.from(0)
		for _, line := range lines {
			m := turnLine.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			n++
			epoch, _ := strconv.Atoi(m[2])
			known := tenures[m[1]]
			if epoch < 1 || epoch > len(known) {
				t.Errorf("a turn outside any tenure: %s", line)
				continue
			}
			span, at := known[epoch-1], logTime(t, line)
			if at.Before(span.claimed) || !span.superseded.IsZero() && at.After(span.superseded) {
				t.Errorf("a turn outside its tenure, which was claimed at %v and superseded at %v: %s", span.claimed, span.superseded, line)
			}
		}
	}
	return n
}

// TestSpansFindsOverlaps: the checker that the tests here rest on finds a claim
// over a tenure that may still stand, an epoch that is left out, and an event of a
// tenure that is over; a lapse and a release are none.
func TestSpansFindsOverlaps(t *testing.T) {
	const ttl = 3 * time.Second
	lease, start := events.SeatLease("dev"), time.Now()
	at := func(after time.Duration, e events.Event) events.Recorded {
		return events.Recorded{Stream: events.StreamFleet, At: start.Add(after), Event: e}
	}
	claim := func(after time.Duration, epoch uint64) events.Recorded {
		return at(after, events.LeaseClaimed{Lease: lease, Epoch: epoch})
	}
	renew := func(after time.Duration, epoch uint64) events.Recorded {
		return at(after, events.LeaseRenewed{Lease: lease, Epoch: epoch})
	}
	release := at(time.Second, events.LeaseReleased{Lease: lease, Epoch: 1})
	for name, c := range map[string]struct {
		history []events.Recorded
		want    int
	}{
		"lapsed":              {[]events.Recorded{claim(0, 1), renew(time.Second, 1), claim(time.Second+ttl, 2)}, 0},
		"released":            {[]events.Recorded{claim(0, 1), release, claim(time.Second, 2)}, 0},
		"too early":           {[]events.Recorded{claim(0, 1), renew(time.Second, 1), claim(ttl, 2)}, 1},
		"epoch left out":      {[]events.Recorded{claim(0, 1), release, claim(time.Second, 3)}, 1},
		"renewed after claim": {[]events.Recorded{claim(0, 1), claim(ttl, 2), renew(ttl, 1)}, 1},
		"renewed and free":    {[]events.Recorded{claim(0, 1), release, renew(ttl, 1)}, 1},
	} {
		if _, got := spans(c.history, ttl); len(got) != c.want {
			t.Errorf("%s: found %q, want %d", name, got, c.want)
		}
	}
}

// TestCase36NodesComeAndGo: a node is started and killed every few seconds, and
// the network of another is cut and healed at random, while mail flows to 60
// seats. Over all events no two tenures of a seat overlap, and no turn was started
// outside its tenure; every mail is answered once; at the end the two that are
// left hold all seats (case 36).
func TestCase36NodesComeAndGo(t *testing.T) {
	t.Parallel()
	const ttl, seats = minTTLSeconds * time.Second, 60
	brokers := natstest.R1(t)
	url := brokers.Server(0).NodeURL()
	network, through := newSwallower(t, url)
	doc := echoes(seats, "")
	company := filepath.Join(t.TempDir(), "company.yaml")
	if err := os.WriteFile(company, doc, 0o600); err != nil {
		t.Fatal(err)
	}
	steady := hostNode(t, hostedConfig(t, "steady", url), doc)
	shaky := hostNode(t, hostedConfig(t, "shaky", through), nil)
	nodes := []*hosted{steady, shaky}
	eventually(t, time.Minute, "all seats are held", func() bool { return admitting(nodes) == seats })
	flow := steady.flow(t, seats, 50*time.Millisecond)
	logs := []*logLines{steady.logs, shaky.logs}

	over := time.Now().Add(time.Duration(times(20, 600)) * time.Second)
	for time.Now().Before(over) {
		p := launch(t, "run", "--node-id", "comet", "--data-dir", t.TempDir(), "--api-listen", "127.0.0.1:0",
			"--stream-type", "external", "--stream-urls", url, "--coordination-type", "embedded-kv",
			"--coordination-lease-ttl-seconds", strconv.Itoa(minTTLSeconds), "--seat-sweep-interval", "1s", "--company", company)
		logs = append(logs, p.logs)
		<-time.After(time.Duration(1000+rand.IntN(2000)) * time.Millisecond)
		network.lose(true)
		<-time.After(time.Duration(rand.IntN(4000)) * time.Millisecond)
		p.kill()
		network.lose(false)
		network.breakAll()
		<-time.After(time.Duration(rand.IntN(1000)) * time.Millisecond)
	}
	eventually(t, 3*time.Minute, "the two that are left hold all seats", func() bool { return admitting(nodes) == seats })
	flow.answered(t, steady, time.Minute)
	tenures, overlaps := spans(steady.history(t, events.StreamFleet), ttl)
	for _, overlap := range overlaps {
		t.Error(overlap)
	}
	claimed := 0
	for _, known := range tenures {
		claimed += len(known)
	}
	n := turnsWithin(t, tenures, logs...)
	t.Logf("%d tenures of %d seats, %d turns on %d mails, %d processes killed", claimed, len(tenures), n, len(flow.sent), len(logs)-2)
	if n < len(flow.sent) {
		t.Errorf("%d turns were started on %d mails", n, len(flow.sent))
	}
	audited(t, steady.url())
}
