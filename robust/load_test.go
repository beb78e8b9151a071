package robust_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// mail is what became of one message that the harness sent.
type mail struct {
	id, seat string
	relay    string
	acked    int64 // when a node said that it is stored; 0: nobody did
	tries    int
}

// load sends mail and reads who holds what, all along.
type load struct {
	w      *world
	mu     sync.Mutex
	mails  []*mail
	reads  []reading
	failed map[string]int // answers that were none, by what they said
}

// reading is a node's answer about every seat, at one position.
type reading struct {
	node     string
	position uint64
	holders  map[string]holding
	answered int64
}

// holding is one seat's owner and epoch; none has epoch 0.
type holding struct {
	owner string
	epoch uint64
}

// How much there is to do.
const (
	senders   = 3
	sendPause = 900 * ms // of each sender, on average
	readPause = 700 * ms
	sendLimit = 6 * time.Second
	sendTries = 4
)

// run works until ctx ends.
func (l *load) run(ctx context.Context, seed uint64) {
	var all sync.WaitGroup
	for s := range senders {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(100+s)))
			for i := 0; ctx.Err() == nil; i++ {
				l.send(ctx, random, fmt.Sprintf("m-%d-%05d", s, i))
				pause(ctx, time.Duration(random.Int64N(int64(2*sendPause))))
			}
		})
	}
	all.Go(func() {
		random := rand.New(rand.NewPCG(seed, 99))
		for ctx.Err() == nil {
			l.read(ctx, l.w.nodes[random.IntN(nodeCount)])
			pause(ctx, readPause)
		}
	})
	all.Wait()
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// send sends one message through some node, and again under the same id through
// another when nobody said that it is stored. What was acknowledged once counts.
func (l *load) send(ctx context.Context, random *rand.Rand, id string) {
	m := &mail{id: id, seat: seatName(random.IntN(seats))}
	if random.IntN(8) == 0 {
		m.relay = seatName(random.IntN(seats))
	}
	conversation := ""
	if random.IntN(4) == 0 {
		conversation = fmt.Sprintf("c-%d", random.IntN(2))
	}
	l.mu.Lock()
	l.mails = append(l.mails, m)
	l.mu.Unlock()
	for range sendTries {
		n := l.w.nodes[random.IntN(nodeCount)]
		m.tries++
		err := n.sendMail(ctx, m, conversation)
		if err == nil {
			l.mu.Lock()
			m.acked = monotonic()
			l.mu.Unlock()
			return
		}
		if ctx.Err() != nil {
			return
		}
		l.count(err)
	}
}

func (l *load) count(err error) {
	what := "no answer"
	if errors.Is(err, errRefusedByNode) {
		what = err.Error()
	}
	l.mu.Lock()
	l.failed[what[:min(len(what), 100)]]++
	l.mu.Unlock()
}

func (n *node) sendMail(ctx context.Context, m *mail, conversation string) error {
	variables := map[string]any{"h": m.seat, "id": m.id, "data": mailBody{Relay: m.relay}}
	if conversation != "" {
		variables["c"] = conversation
	}
	var out struct{ SendMessage struct{ ID string } }
	err := n.ask(ctx, sendLimit, `mutation($h: ID!, $id: ID!, $data: JSON!, $c: String) {
		sendMessage(handle: $h, type: "task_assigned", id: $id, data: $data, conversation: $c) { id } }`, variables, &out)
	if err == nil && out.SendMessage.ID != m.id {
		return fmt.Errorf("sent %s, stored %q", m.id, out.SendMessage.ID)
	}
	return err
}

const readQuery = `{ asOf { answeredBy position copy } seats(first: 100) { edges { node { handle owner epoch state } } } }`

type seatsAnswer struct {
	AsOf struct {
		AnsweredBy, Position, Copy string
	}
	Seats struct {
		Edges []struct {
			Node struct {
				Handle, State string
				Owner, Epoch  *string
			}
		}
	}
}

func (l *load) read(ctx context.Context, n *node) {
	var out seatsAnswer
	if err := n.ask(ctx, 3*time.Second, readQuery, nil, &out); err != nil {
		l.count(err)
		return
	}
	r := reading{node: out.AsOf.AnsweredBy, holders: map[string]holding{}, answered: monotonic()}
	r.position = number(out.AsOf.Position)
	for _, e := range out.Seats.Edges {
		var h holding
		if e.Node.Owner != nil && e.Node.Epoch != nil {
			h = holding{*e.Node.Owner, number(*e.Node.Epoch)}
		}
		r.holders[e.Node.Handle] = h
	}
	l.mu.Lock()
	l.reads = append(l.reads, r)
	l.mu.Unlock()
}

// number reads a decimal; what is none is 0, which no check takes for an answer.
func number(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
