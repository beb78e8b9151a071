package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Bounds of what is drawn.
const (
	drawnTTL   = 15 * time.Second
	leastSteps = 20
	mostSteps  = 40
)

// Draw makes the script of a seed: the same one for ever, as long as this file
// does not change. What is to be kept is kept as a story.
func Draw(seed uint64) Script {
	r := rand.New(rand.NewPCG(seed, 0x7e4e))
	s := Script{
		Seed: seed, TTL: drawnTTL,
		Mail: time.Duration(400+r.IntN(1600)) * time.Millisecond,
		For:  time.Duration(100+r.IntN(80)) * time.Second,
	}
	for i := range 3 + r.IntN(2) {
		s.Nodes = append(s.Nodes, string(rune('a'+i)))
	}
	for i := range 6 + r.IntN(7) {
		s.Seats = append(s.Seats, fmt.Sprintf("s%d", i+1))
	}
	d := drawing{r, append(slices.Clone(s.Nodes), string(rune('a'+len(s.Nodes)))), s.Seats}
	// A third of the fleets meet pauses that no clock shows: of those less can be
	// asked, see Judge.
	uncounted := r.IntN(3) == 0
	// Half of the time things come in bursts: what breaks a protocol is mostly one
	// fault on top of another.
	at := 10 * time.Second
	mean := (s.For - at) / (leastSteps + time.Duration(r.IntN(mostSteps-leastSteps+1)))
	for at < s.For {
		s.Steps = append(s.Steps, d.step(at, uncounted))
		if r.IntN(2) == 0 {
			at += d.ms(1, 1500)
		} else {
			at += d.ms(1, int(3*mean/time.Millisecond))
		}
	}
	return s
}

type drawing struct {
	r     *rand.Rand
	nodes []string // the last one is not there at first
	seats []string
}

func (d drawing) ms(from, to int) time.Duration {
	return time.Duration(from+d.r.IntN(to-from)) * time.Millisecond
}

func (d drawing) node() string { return d.nodes[d.r.IntN(len(d.nodes))] }
func (d drawing) seat() string { return d.seats[d.r.IntN(len(d.seats))] }

func (d drawing) one(words ...string) string { return words[d.r.IntN(len(words))] }

// step draws one thing that happens. Half of it befalls nodes and their way to
// the broker, a quarter is wanted by somebody, the rest is work that fails.
func (d drawing) step(at time.Duration, uncounted bool) Step {
	s := Step{At: at}
	switch d.r.IntN(4) {
	case 0:
		d.machine(&s, uncounted)
	case 1:
		d.network(&s)
	case 2:
		d.wish(&s)
	default:
		d.work(&s)
	}
	return s
}

func (d drawing) machine(s *Step, uncounted bool) {
	s.Node = d.node()
	switch d.r.IntN(10) {
	case 0, 1, 2:
		s.Do, s.For = Crash, d.ms(1, 30_000)
	case 3, 4, 5, 6:
		s.Do, s.For = Stop, d.ms(1, 40_000)
		if uncounted && d.r.IntN(2) == 0 {
			s.How = "uncounted"
		}
	case 7:
		s.Do, s.For = Leave, d.ms(1000, 40_000)
	case 8:
		s.Do, s.For = Wall, time.Duration(d.r.IntN(7200)-3600)*time.Second
		if d.r.IntN(2) == 0 {
			s.Node = ""
		}
	default:
		s.Do, s.Node = Join, d.nodes[len(d.nodes)-1]
	}
}

func (d drawing) network(s *Step) {
	s.Node, s.Times = d.node(), 1+d.r.IntN(4)
	s.Stream = d.one("FLEET", "FLEET", "CURSOR", "CURSOR", "WORK", "DEAD", "MAIL")
	switch d.r.IntN(9) {
	case 0, 1:
		*s = Step{At: s.At, Do: Cut, Node: s.Node, For: d.ms(1, 35_000)}
	case 2, 3:
		s.Do, s.How = Lose, d.one("answer", "answer", "write")
	case 4, 5:
		s.Do, s.For = Late, d.ms(1, 25_000)
	case 6:
		s.Do = Busy
	case 7:
		*s = Step{At: s.At, Do: Stale, Node: s.Node, For: d.ms(1, 40_000)}
	default:
		*s = Step{At: s.At, Do: Slow, Node: s.Node, How: d.one("", "answer"), Times: 1 + d.r.IntN(20), For: d.ms(1, 4000)}
	}
}

func (d drawing) wish(s *Step) {
	s.Seat = d.seat()
	switch d.r.IntN(10) {
	case 0, 1, 2:
		s.Do, s.To = Move, d.node()
	case 3:
		s.Do = Release
	case 4:
		s.Do = Fence
	case 5:
		s.Do, s.For, s.How = Pause, d.ms(1, 30_000), d.one("", "turn")
	case 6:
		s.Do, s.Seat, s.Node, s.For = Cordon, "", d.node(), d.ms(1, 30_000)
	case 7:
		s.Do, s.Seat, s.Node, s.For = Drain, "", d.node(), d.ms(1000, 30_000)
	case 8:
		s.Do, s.For = Remove, d.ms(1, 40_000)
	default:
		s.Do, s.To, s.For = Place, d.node(), d.ms(1, 40_000)
	}
}

func (d drawing) work(s *Step) {
	s.Times = 1 + d.r.IntN(3)
	switch d.r.IntN(4) {
	case 0:
		s.Do, s.Node, s.How = Up, d.node(), d.one("fail", "panic", "hang")
	case 1:
		s.Do, s.Node, s.How = Down, d.node(), d.one("fail", "panic", "hang")
	default:
		s.Do, s.Seat, s.How = Turns, d.seat(), d.one("fail", "fail", "panic", "break", "hang", "stubborn", "steady", "steady")
	}
	if s.How == "hang" || s.How == "stubborn" || s.How == "steady" {
		s.For = d.ms(100, 45_000)
	}
}
