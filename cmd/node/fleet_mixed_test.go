package main

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
)

// moodyScript is effectScript for mail that fails as well, until somebody makes
// the file UP beside the effects.
const moodyScript = `read -r turn || exit 1
case $turn in *'"fails":true'*) [ -e "$1.up" ] || exit 1 ;; esac
printf '%s\n' "$turn" >>"$1"
case $turn in *'"slow":true'*) sleep 0.4 ;; esac
echo '{"type":"done"}'
`

// fleetStreams are all streams of a fleet.
var fleetStreams = []events.Stream{
	events.StreamFleet, events.StreamMail, events.StreamCursor, events.StreamWork, events.StreamMemory, events.StreamDead,
}

// streamWatch is what happens to the settings of a fleet's streams.
type streamWatch struct {
	t     *testing.T
	nc    *nats.Conn
	store broker.Store

	mu      sync.Mutex
	changes []string // of streams' settings, and consumers of MAIL
}

// watchStreams hears of every stream that is made, changed or deleted, and of
// every consumer that mail would be read by, from now on.
func watchStreams(t *testing.T, url string, store broker.Store) *streamWatch {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	w := &streamWatch{t: t, nc: nc, store: store}
	mail := store.Subjects().StreamName(events.StreamMail)
	for _, subject := range []string{"$JS.EVENT.ADVISORY.STREAM.>", "$JS.EVENT.ADVISORY.CONSUMER.CREATED." + mail + ".>"} {
		_, err := nc.Subscribe(subject, func(m *nats.Msg) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.changes = append(w.changes, fmt.Sprintf("%s: %s", m.Subject, m.Data))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return w
}

// heard lists what it heard of.
func (w *streamWatch) heard() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changes
}

// settings reads the settings of all streams.
func (w *streamWatch) settings() map[events.Stream]jetstream.StreamConfig {
	w.t.Helper()
	js, err := jetstream.New(w.nc)
	if err != nil {
		w.t.Fatal(err)
	}
	all := map[events.Stream]jetstream.StreamConfig{}
	for _, st := range fleetStreams {
		s, err := js.Stream(w.t.Context(), w.store.Subjects().StreamName(st))
		if err != nil {
			w.t.Fatal(err)
		}
		all[st] = s.CachedInfo().Config
	}
	return all
}

// mixedFleet is two nodes whose files differ in everything that touches mail.
type mixedFleet struct {
	t       *testing.T
	brokers *natstest.Brokers
	args    map[string][]string
	progs   map[string]string // another build; empty for this one
	nodes   map[string]*process
	runs    map[string][]*logLines
}

func startMixedFleet(t *testing.T, brokers *natstest.Brokers, company string) *mixedFleet {
	t.Helper()
	url := brokers.Server(0).NodeURL()
	f := &mixedFleet{t: t, brokers: brokers, progs: map[string]string{}, nodes: map[string]*process{}, runs: map[string][]*logLines{}}
	node := func(id string, own ...string) []string {
		return append([]string{
			"run", "--node-id", id, "--data-dir", t.TempDir(), "--api-listen", "127.0.0.1:0", "--stream-type", "external",
			"--stream-urls", url, "--coordination-type", "embedded-kv", "--company", company,
		}, own...)
	}
	f.args = map[string][]string{
		"a": node("a", "--coordination-lease-ttl-seconds", "3", "--seat-sweep-interval", "1s", "--mailbox-grace", "48h",
			"--mailbox-tick", "200ms", "--mailbox-retire-budget", "1s"),
		"b": node("b", "--coordination-lease-ttl-seconds", "7", "--seat-sweep-interval", "500ms", "--seat-limits", "fixed",
			"--seat-claim-limit-per-sweep", "8", "--mailbox-grace", "1s", "--mailbox-tick", "300ms", "--mailbox-resume-after", "20m"),
	}
	if fullCounts {
		f.progs["b"] = olderBuild(t)
	}
	f.start("a")
	f.start("b")
	return f
}

func (f *mixedFleet) start(id string) {
	f.t.Helper()
	if f.progs[id] == "" {
		f.nodes[id] = startNode(f.t, f.args[id]...)
	} else {
		p := launchProgram(f.t, f.progs[id], "", nil, f.args[id]...)
		p.url = apiLine.FindStringSubmatch(p.await(startLimit, apiLine.String()))[1]
		f.nodes[id] = p
	}
	f.runs[id] = append(f.runs[id], f.nodes[id].logs)
}

// said counts the lines that the runs of a node logged; most is the most in one.
func (f *mixedFleet) said(id, pattern string) (all, most int) {
	for _, run := range f.runs[id] {
		n := run.count(pattern)
		all, most = all+n, max(most, n)
	}
	return all, most
}

// sendTold sends mail with that data.
func sendTold(ctx context.Context, shell *commands.Shell, handle, id, data string) error {
	_, err := shell.Send(ctx, events.Mail{
		Handle: handle, Mailbox: events.Inbox, ID: id, Type: events.TaskAssigned, Time: time.Now().UTC(), Data: []byte(data),
	})
	return err
}

// TestCase22RestartsWithOtherSettings: two nodes whose files differ in the lease's
// TTL, the passes' limits and everything about mailboxes, in the full count also in
// the build, are stopped and killed in turn, and started again, while mail is in
// flight and mail waits for its next try. No mail is lost; the streams' settings are
// what they were at every moment, and nobody makes a consumer; what differs is said
// once by each run, and the fleet's own counts; a node that needs other streams is
// refused and changes nothing (case 22, L7).
func TestCase22RestartsWithOtherSettings(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a fleet, over and over")
	}
	t.Parallel()
	const seats = 4
	brokers := natstest.R1(t)
	store, url := brokers.Store(0), brokers.Server(0).NodeURL()
	shell, work := outsider(store), newEffects(t, moodyScript)
	watch := watchStreams(t, url, store)
	before := watch.settings()
	f := startMixedFleet(t, brokers, work.company(seats+1))
	gone := seatName(seats)
	f.nodes["a"].must(nil, "send", gone, "--id", "warm", "--wait=30s")
	f.nodes["a"].must(nil, "company", "apply", work.company(seats), "--reason", "one seat less")
	f.nodes["a"].await(20*time.Second, `msg=seat_mailbox_absent .*seat=`+gone)
	sent := map[string]string{}
	send := func(handle, id, data string) {
		t.Helper()
		if err := sendTold(t.Context(), shell, handle, id, data); err != nil {
			t.Fatal(err)
		}
		sent[id] = handle
	}
	if err := sendTold(t.Context(), shell, gone, "kept", `{}`); err != nil {
		t.Fatal(err)
	}

	rounds := times(4, 24)
	for round := range rounds {
		victim := []string{"a", "b"}[round%2]
		for i := range seats {
			send(seatName(i), fmt.Sprintf("plain-%d-%d", round, i), `{}`)
			send(seatName(i), fmt.Sprintf("fails-%d-%d", round, i), `{"fails":true}`)
			send(seatName(i), fmt.Sprintf("slow-%d-%d", round, i), `{"slow":true}`)
		}
		eventually(t, 30*time.Second, "mail is in flight", func() bool {
			done := effectsOf(t, work.path())
			return slices.ContainsFunc([]int{0, 1, 2, 3}, func(i int) bool { return len(done[fmt.Sprintf("slow-%d-%d", round, i)]) > 0 })
		})
		if round%4 == 0 || round%4 == 3 {
			f.nodes[victim].signal(syscall.SIGTERM)
			<-f.nodes[victim].done
		} else {
			f.nodes[victim].kill()
		}
		if round == 0 { // the other one has the duty meanwhile
			f.nodes["b"].await(20*time.Second, `msg=seat_mailbox_grace_differs .*judged_by=48h0m0s file=1s`)
		}
		if round == rounds/2 {
			work.write("effects.up", "")
		}
		f.start(victim)
	}

	if f.progs["b"] != "" { // the rollout is finished: a newer node claims nothing beside an older (V1)
		f.nodes["b"].signal(syscall.SIGTERM)
		<-f.nodes["b"].done
		f.progs["b"] = ""
		f.start("b")
	}
	eventually(t, time.Minute, "all mail is completed", func() bool {
		for id, handle := range sent {
			if _, ok, err := shell.Completed(t.Context(), handle, id); err != nil || !ok {
				return false
			}
		}
		return true
	})
	count := map[string]int{}
	for _, r := range historyOf(t, store, events.StreamWork, events.StreamDead) {
		switch e := r.Event.(type) {
		case events.TurnCompleted:
			count[e.EventID]++
		case events.MailParked:
			t.Errorf("mail %s to %s was parked: %s", e.EventID, e.Handle, e.Reason)
		}
	}
	delayed, done := 0, effectsOf(t, work.path())
	for id := range sent {
		if count[id] != 1 || len(done[id]) == 0 {
			t.Errorf("%s has %d completions and %d effects", id, count[id], len(done[id]))
		}
		if strings.HasPrefix(id, "fails-") && len(done[id]) > 0 && done[id][0].Attempt > 1 {
			delayed++
		}
	}
	if delayed == 0 {
		t.Error("no mail waited for another try while nodes were restarted")
	}
	f.judgeSettings(watch, before, gone)
	audited(t, f.nodes["a"].url)
}

// judgeSettings looks at what came of the differences.
func (f *mixedFleet) judgeSettings(watch *streamWatch, before map[events.Stream]jetstream.StreamConfig, gone string) {
	t := f.t
	t.Helper()
	if all, most := f.said("b", `msg=lease_ttl_adopted .*fleet=3s file=7s`); all != len(f.runs["b"]) || most != 1 {
		t.Errorf("%d runs said %d times that the fleet's TTL is another, one of them %d times", len(f.runs["b"]), all, most)
	}
	if all, _ := f.said("a", `msg=lease_ttl_adopted `); all != 0 {
		t.Errorf("who has the fleet's TTL said %d times that it adopts one", all)
	}
	if all, most := f.said("b", `msg=seat_mailbox_grace_differs `); all == 0 || most != 1 {
		t.Errorf("its runs said %d times that the grace is another, one of them %d times", all, most)
	}
	var m struct {
		Mailbox struct {
			State     string
			Pending   *int
			RetiresAt *time.Time
		}
	}
	f.nodes["b"].must(&m, "mailbox", "show", gone, "-o", "json")
	if at := m.Mailbox.RetiresAt; m.Mailbox.State != "ABSENT" || m.Mailbox.Pending == nil || *m.Mailbox.Pending != 1 || at == nil || time.Until(*at) < 47*time.Hour {
		t.Errorf("the removed seat's mailbox is %+v; want its mail kept for the longer grace", m.Mailbox)
	}

	// A file that needs other streams, last: it must not bend them to itself.
	other := append(slices.Clone(f.args["a"]), "--node-id", "c", "--data-dir", t.TempDir(), "--stream-replicas", "3", "--coordination-lease-ttl-seconds", "15")
	p := launch(t, other...)
	<-p.done
	lines, _ := p.logs.from(0)
	if text := strings.Join(lines, "\n"); p.cmd.ProcessState.ExitCode() == 0 || !strings.Contains(text, "exists with other settings: num_replicas is 1, needed is 3") {
		t.Errorf("a node that needs three replicas ended with %v:\n%s", p.cmd.ProcessState, text)
	}
	if now := watch.settings(); !reflect.DeepEqual(now, before) || len(watch.heard()) > 0 {
		t.Errorf("changes %q; the streams are\n%+v, were\n%+v", watch.heard(), now, before)
	}
	// And a change would have been heard of.
	f.brokers.Reconfigure(t, broker.Config{Prefix: natstest.Prefix}, events.StreamMail, func(c *jetstream.StreamConfig) { c.MaxMsgSize-- })
	eventually(t, 10*time.Second, "a change is heard of", func() bool { return len(watch.heard()) > 0 })
}
