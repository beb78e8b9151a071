package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat/seattest"
	"github.com/seat-tenure/tenure/sim"
	"github.com/seat-tenure/tenure/turn"
)

// shortest is how long a turn takes at least: what the judge reads of cursors is
// the newest at each moment.
const shortest = 10 * time.Millisecond

// agents run the seats of one process. Each thing that one of them does is told
// to the judge in the moment in which it is done, fenced by the turn right before.
type agents struct {
	p   *process
	log *ears
}

// Agent implements turn.Agents.
func (a agents) Agent(handle string) (turn.Agent, error) {
	return turn.Agent{ID: "agent-" + handle, Runner: a}, nil
}

type turnKey struct{}

// Run implements turn.Runner: a few calls with pauses, some of which send mail on,
// unless the script has other plans for the turn.
func (a agents) Run(ctx context.Context, req turn.Request, calls turn.Calls) (turn.Reply, error) {
	a.p.gate.wait()
	d := sim.Deed{
		Seat: req.Seat, Epoch: req.Epoch, Owner: a.p.Self,
		Seqs: a.p.admits.on(req.Seat, req.Epoch), Rerun: a.log.heard.take(req.Seat, req.Epoch, req.Events[0].ID),
	}
	for _, e := range req.Events {
		d.Mails = append(d.Mails, e.ID)
	}
	began := d
	began.Start, began.At = true, time.Now()
	if a.p.dead.Load() {
		return turn.Reply{}, errNobody
	}
	a.p.w.judge.Did(began)
	defer a.p.w.judge.Ended(began)
	ctx = context.WithValue(ctx, turnKey{}, d)
	plan := a.p.w.plans.take(req.Seat)
	draw := drawFor(a.p.w.script.Seed, req.Seat, d.Mails[0], req.Attempt)
	if err := pass(ctx, shortest); err != nil {
		return turn.Reply{}, err
	}
	pause := 400 // a few turns take long: they are the ones that outlive their tenure
	if draw.IntN(8) == 0 {
		pause = 6000
	}
	for i := range 1 + draw.IntN(5) {
		if err := pass(ctx, time.Duration(draw.IntN(pause))*time.Millisecond); err != nil {
			return turn.Reply{}, err
		}
		a.p.gate.wait()
		tool, args := turn.ToolSeatStatus, `{"seat":"`+req.Seat+`"}`
		if first := !strings.Contains(string(req.Events[0].Data), "sent on"); first && draw.IntN(8) == 0 {
			to := a.p.w.script.Seats[draw.IntN(len(a.p.w.script.Seats))]
			tool, args = turn.ToolSend, `{"to":"`+to+`","data":"sent on"}`
		}
		if _, err := calls.Call(ctx, fmt.Sprint(i), tool, json.RawMessage(args)); errors.Is(err, turn.ErrFenced) {
			return turn.Reply{}, err
		}
		if err := a.plan(ctx, plan, req, calls); err != nil {
			return turn.Reply{}, err
		}
		plan.how = ""
	}
	return turn.Reply{JSON: json.RawMessage(`{"ok":true}`)}, nil
}

// plan lets the turn go wrong.
func (a agents) plan(ctx context.Context, plan trouble, req turn.Request, calls turn.Calls) error {
	switch plan.how {
	case "fail":
		return errors.New("the program fails")
	case "panic":
		panic("the program panics")
	case "break":
		_, err := calls.Call(ctx, "b", turn.ToolSend, json.RawMessage(`{"to":"`+req.Seat+`","data":"sent on"}`))
		return errors.Join(err, errors.New("the program breaks"))
	case "hang":
		return pass(ctx, plan.for_)
	case "steady":
		for end := time.Now().Add(plan.for_); time.Now().Before(end); {
			a.p.gate.wait()
			if _, err := calls.Call(ctx, "s", turn.ToolSeatStatus, json.RawMessage(`{"seat":"`+req.Seat+`"}`)); err != nil {
				return err
			}
			if err := pass(ctx, 100*time.Millisecond); err != nil {
				return err
			}
		}
	case "stubborn":
		<-time.After(plan.for_) // told to end, it does not
	}
	return nil
}

// errNobody: the process is dead, and only what is left of it in this one asks.
var errNobody = errors.New("nobody is there to do it")

// pass lets time pass, unless ctx ends.
func pass(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// drawFor is a source of chance for one attempt, the same whenever it is made.
func drawFor(seed uint64, words ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, words...)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// do tells the judge of an effect of the turn that ctx is of.
func (p *process) do(ctx context.Context) error {
	d, is := ctx.Value(turnKey{}).(sim.Deed)
	if !is || p.dead.Load() {
		return errNobody
	}
	d.At = time.Now()
	p.w.judge.Did(d)
	return nil
}

// status implements turn.Status: what it is asked is all that the turn does.
type status struct{ p *process }

func (s status) SeatStatus(ctx context.Context, _ string) (json.RawMessage, error) {
	return json.RawMessage(`{}`), s.p.do(ctx)
}

// sender implements turn.Sender.
type sender struct {
	p *process
	n *seattest.Node
}

func (s sender) Send(ctx context.Context, m events.Mail) error {
	if err := s.p.do(ctx); err != nil {
		return err
	}
	seq, err := s.n.Shell.Send(ctx, m)
	if err == nil {
		s.p.w.judge.Sent(m.Handle, m.ID, seq, time.Now())
	}
	return err
}

// plans are what the script has in mind for the turns of each seat.
type plans struct {
	mu   sync.Mutex
	next map[string][]trouble // guarded by mu
}

func (p *plans) add(seat string, x trouble, times int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range times {
		p.next[seat] = append(p.next[seat], x)
	}
}

func (p *plans) take(seat string) trouble {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.next[seat]
	if len(all) == 0 {
		return trouble{}
	}
	p.next[seat] = all[1:]
	return all[0]
}

func (p *plans) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = map[string][]trouble{}
}

// ears hear what a process reports of its turns, and pass it on.
type ears struct {
	slog.Handler
	judge *sim.Judge
	heard *heard
	with  map[string]slog.Value
}

// heard is what ears of one process have heard.
type heard struct {
	mu    sync.Mutex
	reran map[string]int // guarded by mu
}

// take says whether a re-run of that mail was reported, once for each report.
func (h *heard) take(seat string, epoch uint64, id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := fmt.Sprint(seat, " ", epoch, " ", id)
	if h.reran[key] == 0 {
		return false
	}
	h.reran[key]--
	return true
}

func (e *ears) logger() *slog.Logger { return slog.New(e) }

func (e *ears) Handle(ctx context.Context, r slog.Record) error {
	switch r.Message {
	case "turn_rerun_after_unfinished_attempt":
		e.heard.mu.Lock()
		e.heard.reran[fmt.Sprint(e.with["seat"], " ", e.with["epoch"], " ", e.with["event"])]++
		e.heard.mu.Unlock()
	case "completion_ledger_unread":
		e.judge.Excuse(sim.Unread, e.with["seat"].String(), e.with["event"].String())
	case "completion_unwritten":
		var seat string
		var ids []string
		r.Attrs(func(a slog.Attr) bool {
			switch a.Key {
			case "seat":
				seat = a.Value.String()
			case "events":
				ids, _ = a.Value.Any().([]string)
			}
			return true
		})
		for _, id := range ids {
			e.judge.Excuse(sim.Unwritten, seat, id)
		}
	}
	return e.Handler.Handle(ctx, r)
}

func (e *ears) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := map[string]slog.Value{}
	for key, value := range e.with {
		with[key] = value
	}
	for _, a := range attrs {
		with[a.Key] = a.Value
	}
	return &ears{e.Handler.WithAttrs(attrs), e.judge, e.heard, with}
}
