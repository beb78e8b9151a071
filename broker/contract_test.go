package broker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/events"
)

// fleet is a fresh set of streams and three connections to it, on R3 to three
// servers.
type fleet struct {
	kind     string // memory, R1, R3
	p        string // subject prefix and dot
	stores   [3]broker.Store
	recreate func(t *testing.T, st events.Stream) // replaces a stream by an empty one
	// open opens the fleet at server i as another node would, nil for the twin.
	open func(t *testing.T, i int, cfg broker.Config) broker.Store
	cfg  broker.Config
}

func (f fleet) stream(st events.Stream) broker.Stream { return f.stores[0].Stream(st) }

// contract is what every Store must do. The twin and the real broker, single
// and replicated, pass the same list: a test that passes on the twin says
// something about production.
var contract = []struct {
	name string
	run  func(t *testing.T, f fleet)
}{
	{"AppendAndRead", contractAppendAndRead},
	{"NotFound", contractNotFound},
	{"CheckLiteral", contractCheckLiteral},
	{"CheckFamily", contractCheckFamily},
	{"Refusals", contractRefusals},
	{"TooLarge", contractTooLarge},
	{"MailDedupe", contractMailDedupe},
	{"WriteOnce", contractWriteOnce},
	{"LastPerSubjectKept", contractLastPerSubjectKept},
	{"Batch", contractBatch},
	{"BatchRefusals", contractBatchRefusals},
	{"LastPerSubjectMany", contractLastPerSubjectMany},
	{"Info", contractInfo},
	{"Purge", contractPurge},
	{"Delete", contractDelete},
	{"Wake", contractWake},
	{"FollowOrder", contractFollowOrder},
	{"FollowLive", contractFollowLive},
	{"FollowBehind", contractFollowBehind},
	{"Schedule10FollowRecreated", contractFollowRecreated},
	{"Identity", contractIdentity},
	{"Schedule10Identity", contractIdentityRecreated},
	{"SettleLog", contractLog},
	{"AppendEach", contractAppendEach},
	{"Case5OneWinner", contractOneWinner},
	{"Case10LeaseTTL", contractLeaseTTL},
}

func TestContract(t *testing.T) {
	t.Parallel()
	run := func(name string, fleet func(t *testing.T) func(t *testing.T) fleet) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runContract(t, fleet(t))
		})
	}
	run("memory", func(*testing.T) func(*testing.T) fleet { return memoryFleet })
	run("R1", func(t *testing.T) func(*testing.T) fleet { return brokerFleet(natstest.R1(t), "R1") })
	run("R3", func(t *testing.T) func(*testing.T) fleet { return brokerFleet(natstest.R3(t), "R3") })
}

func runContract(t *testing.T, found func(t *testing.T) fleet) {
	for _, c := range contract {
		t.Run(c.name, func(t *testing.T) { c.run(t, found(t)) })
	}
}

func memoryFleet(t *testing.T) fleet {
	t.Helper()
	m, err := broker.NewMemory(broker.Config{Prefix: "crewlet", LeaseTTL: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	f := fleet{kind: "memory", p: "crewlet.", stores: [3]broker.Store{m, m.Peer(), m.Peer()}}
	f.recreate = func(_ *testing.T, st events.Stream) { m.Recreate(st) }
	for _, s := range f.stores {
		t.Cleanup(func() { _ = s.Close() })
	}
	return f
}

// prefixes gives each fleet of one server streams of its own: starting a
// cluster for each test would take minutes.
var prefixes atomic.Int64

func brokerFleet(b *natstest.Brokers, kind string) func(t *testing.T) fleet {
	return func(t *testing.T) fleet {
		t.Helper()
		cfg := b.Config()
		cfg.Prefix = fmt.Sprintf("c%d", prefixes.Add(1))
		f := fleet{kind: kind, p: cfg.Prefix + "."}
		for i := range f.stores {
			store := b.StoreWith(i%b.Len(), cfg)
			f.stores[i] = store
			t.Cleanup(func() { _ = store.Close() })
		}
		f.cfg = cfg
		f.open = func(t *testing.T, i int, cfg broker.Config) broker.Store { return b.StoreWith(i%b.Len(), cfg) }
		f.recreate = func(t *testing.T, st events.Stream) { b.Recreate(t, cfg, st) }
		return f
	}
}

var commands atomic.Int64

// write makes a write with a command id of its own.
func write(subject, data string, check *events.Check) events.Write {
	h := events.Header{}
	h.Set(events.HeaderCommand, fmt.Sprintf("cmd-%d", commands.Add(1)))
	return events.Write{Subject: subject, Header: h, Data: []byte(data), Check: check}
}

func at(subject string, last uint64) *events.Check {
	return &events.Check{Subject: subject, Last: last}
}

// mustAppend appends, repeating while the broker is busy.
func mustAppend(t *testing.T, s broker.Stream, w events.Write) uint64 {
	t.Helper()
	seq, err := appendBusy(t.Context(), s, w)
	if err != nil {
		t.Fatalf("append to %s: %v", w.Subject, err)
	}
	return seq
}

// appendBusy repeats what the broker says to repeat.
func appendBusy(ctx context.Context, s broker.Stream, w events.Write) (uint64, error) {
	for {
		seq, err := s.Append(ctx, w)
		if !errors.Is(err, events.ErrBusy) {
			return seq, err
		}
	}
}

func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("%s: got error %v, want %v", what, got, want)
	}
}

func wantRefused(t *testing.T, what string, err error) {
	t.Helper()
	if refused := (*broker.RefusedError)(nil); !errors.As(err, &refused) {
		t.Fatalf("%s: got error %v, want a refusal", what, err)
	}
}

func wantConflict(t *testing.T, err error, actual uint64) {
	t.Helper()
	var conflict *events.ConflictError
	if !errors.As(err, &conflict) || conflict.Actual != actual || !errors.Is(err, events.ErrConflict) {
		t.Fatalf("got error %v, want a conflict with sequence %d", err, actual)
	}
}

func seqsOf(msgs []events.Message) []uint64 {
	seqs := make([]uint64, len(msgs))
	for i, m := range msgs {
		seqs[i] = m.Seq
	}
	return seqs
}

// A stored message comes back whole by each of the leader reads, without the
// headers that are the broker's own.
func contractAppendAndRead(t *testing.T, f fleet) {
	s, subject := f.stream(events.StreamFleet), f.p+"fleet.host.ada"
	w := write(subject, `{"n":1}`, at(subject, 0))
	w.Header.Set("reason", "two words: and a colon")
	first := mustAppend(t, s, w)
	second := mustAppend(t, f.stores[1].Stream(events.StreamFleet), write(f.p+"fleet.host.bob", "2", nil))
	if first != 1 || second != 2 {
		t.Fatalf("sequences %d and %d, want 1 and 2", first, second)
	}
	byGet, err := s.Get(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	byLast, err := f.stores[2].Stream(events.StreamFleet).Last(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	byNext, err := s.Next(t.Context(), f.p+"fleet.host.*", 0)
	if err != nil {
		t.Fatal(err)
	}
	for how, m := range map[string]events.Message{"Get": byGet, "Last": byLast, "Next": byNext} {
		if m.Seq != 1 || m.Subject != subject || string(m.Data) != `{"n":1}` || m.Stream != events.StreamFleet || m.At.IsZero() {
			t.Errorf("%s: got %+v", how, m)
		}
		if m.Header.Get("reason") != "two words: and a colon" || m.Header.Get(events.HeaderCommand) != w.Header.Get(events.HeaderCommand) {
			t.Errorf("%s: header %v", how, m.Header)
		}
		for key := range m.Header {
			if strings.HasPrefix(key, "Nats-") {
				t.Errorf("%s: shows the broker's header %s", how, key)
			}
		}
	}
	next, err := s.Next(t.Context(), f.p+"fleet.host.*", 2)
	if err != nil || next.Seq != 2 {
		t.Errorf("Next from 2: %d, %v", next.Seq, err)
	}
	last, err := s.Last(t.Context(), f.p+"fleet.>")
	if err != nil || last.Seq != 2 {
		t.Errorf("Last of all: %d, %v", last.Seq, err)
	}
}

// The leader's "there is none" is told from every other answer.
func contractNotFound(t *testing.T, f fleet) {
	s := f.stream(events.StreamFleet)
	check := func(state string) {
		_, err := s.Get(t.Context(), 7)
		wantErr(t, state+": Get", err, events.ErrNotFound)
		_, err = s.Get(t.Context(), 0)
		wantErr(t, state+": Get 0", err, events.ErrNotFound)
		_, err = s.Last(t.Context(), f.p+"fleet.host.nobody")
		wantErr(t, state+": Last", err, events.ErrNotFound)
		_, err = s.Next(t.Context(), f.p+"fleet.host.nobody", 1)
		wantErr(t, state+": Next", err, events.ErrNotFound)
	}
	check("empty")
	mustAppend(t, s, write(f.p+"fleet.host.ada", "", nil))
	check("one message")
	_, err := s.Next(t.Context(), f.p+"fleet.host.ada", 2)
	wantErr(t, "Next behind the end", err, events.ErrNotFound)
	_, err = s.Last(t.Context(), f.p+"agent.ada.inbox")
	wantRefused(t, "Last of another stream's subject", err)
}

// Form (a): a literal subject, its own or one the message is not published to.
// The refusal names what stands there.
func contractCheckLiteral(t *testing.T, f fleet) {
	s := f.stream(events.StreamFleet)
	tenure, host := f.p+"fleet.lease.seat.ada.tenure", f.p+"fleet.host.ada"
	claim := mustAppend(t, s, write(tenure, "", at(tenure, 0)))
	_, err := s.Append(t.Context(), write(tenure, "", at(tenure, 0)))
	wantConflict(t, err, claim)
	if c := (*events.ConflictError)(nil); errors.As(err, &c) && c.Subject != tenure {
		t.Errorf("conflict names %q, want %q", c.Subject, tenure)
	}
	effect := mustAppend(t, s, write(host, "", at(tenure, claim)))
	again := mustAppend(t, s, write(host, "", at(tenure, claim)))
	if again != effect+1 {
		t.Errorf("a fence on another subject moved by the write itself: %d, %d", effect, again)
	}
	released := mustAppend(t, s, write(tenure, "", at(tenure, claim)))
	_, err = s.Append(t.Context(), write(host, "", at(tenure, claim)))
	wantConflict(t, err, released)
	_, err = s.Append(t.Context(), write(host, "", at(f.p+"fleet.lease.seat.bob.tenure", 5)))
	wantConflict(t, err, 0)
}

// Form (b): the family string orders claims, renewals and releases.
func contractCheckFamily(t *testing.T, f fleet) {
	s := f.stream(events.StreamFleet)
	subjects := f.stores[0].Subjects()
	lease := events.SeatLease("ada")
	claim := mustAppend(t, s, write(subjects.Tenure(lease), "", subjects.FamilyCheck(lease, 0)))
	renewal := mustAppend(t, s, write(subjects.Renewal(lease), "", subjects.FamilyCheck(lease, claim)))
	_, err := s.Append(t.Context(), write(subjects.Tenure(lease), "", subjects.FamilyCheck(lease, claim)))
	wantConflict(t, err, renewal)
	mustAppend(t, s, write(subjects.Tenure(lease), "", subjects.FamilyCheck(lease, renewal)))
	other := events.SeatLease("adam") // no prefix of another handle belongs to the family
	mustAppend(t, s, write(subjects.Tenure(other), "", subjects.FamilyCheck(other, 0)))
	last, err := s.Last(t.Context(), subjects.Family(lease))
	if err != nil || last.Seq != renewal+1 {
		t.Errorf("family's last: %d, %v, want %d", last.Seq, err, renewal+1)
	}
}

// What the broker would misread never leaves the process.
func contractRefusals(t *testing.T, f fleet) {
	s := f.stream(events.StreamFleet)
	header := func(key, value string) events.Write {
		w := write(f.p+"fleet.host.ada", "", nil)
		w.Header.Set(key, value)
		return w
	}
	for name, w := range map[string]events.Write{
		"a subject of another stream": write(f.p+"agent.ada.inbox", "", nil),
		"a subject of another fleet":  write("other.fleet.host.ada", "", nil),
		"a wildcard subject":          write(f.p+"fleet.host.*", "", nil),
		"a check outside the stream":  write(f.p+"fleet.host.ada", "", at(f.p+"cursor.ada.inbox", 0)),
		"a rollup":                    header("Nats-Rollup", "all"),
		"a TTL":                       header("Nats-TTL", "1s"),
		"a message id on FLEET":       header("Nats-Msg-Id", "x"),
	} {
		_, err := s.Append(t.Context(), w)
		wantRefused(t, name, err)
	}
	mail := write(f.p+"agent.ada.inbox", "", at(f.p+"agent.ada.inbox", 0))
	mail.Header.Set("Nats-Msg-Id", "x")
	_, err := f.stream(events.StreamMail).Append(t.Context(), mail)
	wantRefused(t, "a message id beside a check", err)
	if info, err := s.Info(t.Context()); err != nil || info.Last != 0 {
		t.Errorf("after refusals the stream ends at %d, %v", info.Last, err)
	}
}

// A message over the limit is a refusal, not an unknown outcome to be repeated.
func contractTooLarge(t *testing.T, f fleet) {
	_, err := f.stream(events.StreamFleet).Append(t.Context(), write(f.p+"fleet.company", strings.Repeat("x", 1<<20), nil))
	wantRefused(t, "1 MiB of data and a header", err)
}

// Mail sent twice under one message id is stored once, and both are told where.
func contractMailDedupe(t *testing.T, f fleet) {
	s := f.stream(events.StreamMail)
	w := write(f.p+"agent.ada.inbox", "hello", nil)
	w.Header.Set("Nats-Msg-Id", "ada.inbox.e1.1")
	first, again := mustAppend(t, s, w), mustAppend(t, s, w)
	if first != again {
		t.Errorf("sent twice under one id: sequences %d and %d", first, again)
	}
	m, err := s.Get(t.Context(), first)
	if err != nil || m.Header.Get("Nats-Msg-Id") != "ada.inbox.e1.1" {
		t.Errorf("stored with header %v, %v", m.Header, err)
	}
	w.Header.Set("Nats-Msg-Id", "bob.inbox.e1.1")
	if other := mustAppend(t, s, w); other == first {
		t.Error("another id was taken for the same")
	}
}

// WORK and DEAD keep a subject's first message: the second is told ErrExists,
// also within a batch, and the batch's others are not stored.
func contractWriteOnce(t *testing.T, f fleet) {
	for _, st := range []events.Stream{events.StreamWork, events.StreamDead} {
		s, token := f.stream(st), f.p+strings.ToLower(string(st))+".ada."
		first := mustAppend(t, s, write(token+"1", "first", nil))
		_, err := s.Append(t.Context(), write(token+"1", "second", nil))
		wantErr(t, string(st), err, events.ErrExists)
		if m, err := s.Last(t.Context(), token+"1"); err != nil || string(m.Data) != "first" || m.Seq != first {
			t.Errorf("%s keeps %q at %d, %v", st, m.Data, m.Seq, err)
		}
	}
	s := f.stream(events.StreamWork)
	_, err := s.AppendBatch(t.Context(), []events.Write{write(f.p+"work.ada.2", "", nil), write(f.p+"work.ada.1", "", nil)})
	wantErr(t, "a batch over a recorded id", err, events.ErrExists)
	_, err = s.Last(t.Context(), f.p+"work.ada.2")
	wantErr(t, "the other member", err, events.ErrNotFound)
}

// CURSOR and MEMORY keep the newest message per subject; sequences go on.
func contractLastPerSubjectKept(t *testing.T, f fleet) {
	for _, st := range []events.Stream{events.StreamCursor, events.StreamMemory} {
		s, subject := f.stream(st), f.p+strings.ToLower(string(st))+".ada.inbox"
		old := mustAppend(t, s, write(subject, "1", at(subject, 0)))
		mustAppend(t, s, write(subject, "2", at(subject, old)))
		_, err := s.Get(t.Context(), old)
		wantErr(t, "the replaced message", err, events.ErrNotFound)
		info, err := s.Info(t.Context())
		if err != nil || info.Messages != 1 || info.Last != 2 || info.First != 2 {
			t.Errorf("%s: %+v, %v", st, info, err)
		}
		_, err = s.Append(t.Context(), write(subject, "3", at(subject, old)))
		wantConflict(t, err, 2)
	}
}
