package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
)

// lastRenewal is when the process last sent a renewal of the seat that the log
// has: the shell stamps it right before.
func lastRenewal(all []events.Recorded, handle string, epoch uint64) (sent time.Time) {
	for _, r := range all {
		switch e := r.Event.(type) {
		case events.LeaseClaimed:
			if e.Lease == events.SeatLease(handle) && e.Epoch == epoch {
				sent = r.Meta.Time
			}
		case events.LeaseRenewed:
			if e.Lease == events.SeatLease(handle) && e.Epoch == epoch {
				sent = r.Meta.Time
			}
		}
	}
	return sent
}

// TestCase9PacketsSwallowed: the network between the holder and its broker
// swallows every byte and refuses none, in the middle of a turn that makes one
// call after the other and while mail comes for another of its seats. No turn is
// started later than a heartbeat after the sending of the last renewal that
// stands, and no call is let through later than the TTL after it; the peer has
// the seats then, and the history audits clean (case 9, A1, A3, F2).
func TestCase9PacketsSwallowed(t *testing.T) {
	t.Parallel()
	const ttl = minTTLSeconds * time.Second
	brokers := natstest.R1(t)
	url := brokers.Server(0).NodeURL()
	network, through := newSwallower(t, url)
	dir := agentDir(t)
	doc, err := os.ReadFile(gated(t, "busy", dir))
	if err != nil {
		t.Fatal(err)
	}
	holder := hostNode(t, hostedConfig(t, "holder", through), doc)
	eventually(t, 20*time.Second, "both seats are held", func() bool { return holder.held() == 2 })
	op := outsider(brokers.Store(0))
	if err := post(t.Context(), op, "worker", "job-1"); err != nil {
		t.Fatal(err)
	}
	awaitNote(t, dir, "worker called")

	network.lose(true)
	for i := range 40 { // mail for two TTLs
		if err := post(t.Context(), op, "sink", fmt.Sprintf("m-%d", i)); err != nil {
			t.Fatal(err)
		}
		<-time.After(ttl / 20)
	}
	peer := hostNode(t, hostedConfig(t, "peer", url), nil)
	eventually(t, 20*time.Second, "the peer holds both seats", func() bool { return peer.held() == 2 })
	all := peer.history(t, events.StreamFleet)
	sent := map[string]time.Time{"worker": lastRenewal(all, "worker", 1), "sink": lastRenewal(all, "sink", 1)}

	lines, _ := holder.logs.from(0)
	for _, line := range lines {
		if m := regexp.MustCompile(`msg=turn_started seat=(\S+) epoch=1 `).FindStringSubmatch(line); m != nil {
			if late := logTime(t, line).Sub(sent[m[1]]); late > ttl/3 {
				t.Errorf("a turn on %s started %v after the last good renewal was sent", m[1], late)
			}
		}
	}
	last := time.Time{}
	for _, m := range regexp.MustCompile(`worker called epoch 1 at (\d+)`).FindAllStringSubmatch(notes(t, dir), -1) {
		nanos, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		last = time.Unix(0, nanos)
	}
	late := last.Sub(sent["worker"])
	t.Logf("the last call was answered %v after the last good renewal was sent", late)
	if late > ttl+50*time.Millisecond { // the answer's way to the program and its note
		t.Errorf("a call was let through %v after the last good renewal was sent", late)
	}
	if late < ttl/3 {
		t.Errorf("the turn in flight was cut short %v after the last good renewal, it has %v", late, ttl)
	}
	network.breakAll()
	network.lose(false)
	audited(t, peer.url())
}

// TestCutOffNodeTellsOfNobody: a node that the network cut off hears of no renewal,
// and says of its peer, which goes on renewing, and of itself, that it cannot tell.
// The peer says that it is gone, since nothing of it comes where all others do (L8).
func TestCutOffNodeTellsOfNobody(t *testing.T) {
	t.Parallel()
	brokers := natstest.R1(t)
	url := brokers.Server(0).NodeURL()
	network, through := newSwallower(t, url)
	cut := hostNode(t, hostedConfig(t, "cut", through), echoes(1, ""))
	peer := hostNode(t, hostedConfig(t, "peer", url), nil)
	ofCut, ofPeer := apiLeases{cut.node}, apiLeases{peer.node}
	eventually(t, 20*time.Second, "both see each other", func() bool {
		return ofCut.Liveness(peer.self) == graph.Live && ofPeer.Liveness(cut.self) == graph.Live
	})

	network.lose(true)
	eventually(t, 20*time.Second, "the peer says that it is gone", func() bool { return ofPeer.Liveness(cut.self) == graph.Lapsed })
	eventually(t, 20*time.Second, "the node cannot tell of its peer", func() bool {
		_, here := cut.host.Presence()
		return !here && ofCut.Liveness(peer.self) == graph.LivenessUnknown
	})
	if l := ofCut.Liveness(cut.self); l != graph.LivenessUnknown {
		t.Errorf("of itself it says %v", l)
	}
	if l := ofPeer.Liveness(peer.self); l != graph.Live {
		t.Errorf("the peer says %v of itself", l)
	}
	network.lose(false)
	network.breakAll()
	eventually(t, 20*time.Second, "both see each other again", func() bool {
		return ofCut.Liveness(peer.self) == graph.Live && ofPeer.Liveness(cut.self) == graph.Live
	})
}

// TestCase7StoppedAndResumed: a process stopped for three TTLs does the same
// each time it is resumed: it is not ended by its watchdog, admits nothing under
// the old tenure, and goes on with a new one (case 7, X1, X3).
func TestCase7StoppedAndResumed(t *testing.T) {
	t.Parallel()
	const ttl = minTTLSeconds * time.Second
	dir, url := agentDir(t), externalBroker(t)
	p := startFleetNode(t, "a", url, gated(t, "gate", dir))
	p.awaitHeld(0, 2, 30*time.Second)
	for range times(2, 10) {
		mark := p.mark()
		p.signal(syscall.SIGSTOP)
		<-time.After(3 * ttl)
		p.signal(syscall.SIGCONT)
		p.awaitHeld(mark, 2, 30*time.Second)
		fresh, _ := p.logs.from(mark)
		text := strings.Join(fresh, "\n")
		for _, seat := range []string{"worker", "sink"} {
			gone := regexp.MustCompile(`msg=seat_detached .*seat=` + seat + ` .*reason=(ttl_grace|renew_refused)`).FindStringIndex(text)
			again := regexp.MustCompile(`msg=seat_attached .*seat=` + seat + ` `).FindStringIndex(text)
			if gone == nil || again == nil || gone[0] > again[0] {
				t.Errorf("resumed, it did not give %s up before it took it again:\n%s", seat, text)
			}
		}
	}
	p.must(nil, "audit")
}

// TestCase7ShortOfProcessors: 64 busy loops beside a node for two TTLs do not
// make its watchdog end it (case 7, X1, X2).
func TestCase7ShortOfProcessors(t *testing.T) {
	p := startFleetNode(t, "a", externalBroker(t), gated(t, "gate", agentDir(t)))
	p.awaitHeld(0, 2, 30*time.Second)
	var stop atomic.Bool
	var loops sync.WaitGroup
	for range 64 {
		loops.Go(func() {
			for !stop.Load() {
				runtime.KeepAlive(&stop) // nothing, as fast as it goes
			}
		})
	}
	<-time.After(2 * minTTLSeconds * time.Second)
	stop.Store(true)
	loops.Wait()
	var done completionJSON
	p.must(&done, "send", "sink", "--wait", "-o", "json")
	select {
	case <-p.done:
		t.Errorf("the process ended: %v", p.cmd.ProcessState)
	default:
	}
	p.must(nil, "audit")
}
