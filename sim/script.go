package sim

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"
)

// Script is what befalls a fleet.
type Script struct {
	About []string // what it shows, for a story; a line each
	Seed  uint64   // of the mail and of how agents work on it
	TTL   time.Duration
	Nodes []string      // that are there from the start
	Seats []string      // of the first company
	Mail  time.Duration // a letter is sent about that often
	For   time.Duration // how long things happen; then all is made well again
	Steps []Step        // ascending by At
}

// Step is one thing that happens.
type Step struct {
	At     time.Duration
	Do     Verb
	Node   string
	Seat   string
	To     string        // a node
	Stream string        // FLEET, CURSOR, …
	How    string        // a word that the verb knows
	Times  int           // how often
	For    time.Duration // how long
}

// Verb says what happens.
type Verb string

// Verbs. What has a length ends by itself, so that a step can be left out of a
// script without another one losing its meaning.
const (
	Crash   Verb = "crash"   // node is killed, and started anew after for
	Stop    Verb = "stop"    // node stands still for that long; how=uncounted: and no clock of it shows
	Cut     Verb = "cut"     // node is cut off from the broker for that long
	Slow    Verb = "slow"    // each request of node takes for longer, times seconds long; how=answer: each answer to it
	Lose    Verb = "lose"    // the next times writes of node to stream: how=answer or how=write is lost
	Late    Verb = "late"    // they are not answered, and land after for
	Busy    Verb = "busy"    // they are refused for now
	Stale   Verb = "stale"   // node's view stands still, and replicas answer it with what was, for that long
	Wall    Verb = "wall"    // node's wall clock jumps by for; without a node: the broker's
	Join    Verb = "join"    // a node that was not there starts
	Leave   Verb = "leave"   // node drains and ends, and is started anew after for
	Move    Verb = "move"    // an operator moves seat to a node
	Release Verb = "release" // an operator lets seat go
	Fence   Verb = "fence"   // an operator fences seat
	Pause   Verb = "pause"   // an operator pauses seat for that long; how=turn: and stops its turn
	Cordon  Verb = "cordon"  // an operator cordons node for that long
	Drain   Verb = "drain"   // an operator empties node, within for; it stays cordoned as long again
	Remove  Verb = "remove"  // the company does without seat for that long
	Place   Verb = "place"   // the company ties seat to a node for that long
	Up      Verb = "up"      // the next times seats that come up on node: how=fail, panic or hang, for
	Down    Verb = "down"    // the next times teardowns on node: the same
	Turns   Verb = "turns"   // the next times turns of seat: how=fail, panic, break, hang, stubborn or steady, for
)

var verbs = []Verb{
	Crash, Stop, Cut, Slow, Lose, Late, Busy, Stale, Wall, Join, Leave, Move, Release, Fence, Pause,
	Cordon, Drain, Remove, Place, Up, Down, Turns,
}

// String is the step as a script has it.
func (s Step) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "at %v %s", s.At, s.Do)
	for _, arg := range []struct{ key, value string }{
		{"node", s.Node}, {"seat", s.Seat}, {"to", s.To}, {"stream", s.Stream}, {"how", s.How},
	} {
		if arg.value != "" {
			fmt.Fprintf(&b, " %s=%s", arg.key, arg.value)
		}
	}
	if s.Times != 0 {
		fmt.Fprintf(&b, " times=%d", s.Times)
	}
	if s.For != 0 {
		fmt.Fprintf(&b, " for=%v", s.For)
	}
	return b.String()
}

// String is the script as a story file has it; Parse reads it.
func (s Script) String() string {
	var b strings.Builder
	for _, line := range s.About {
		fmt.Fprintf(&b, "# %s\n", line)
	}
	fmt.Fprintf(&b, "seed %d\nttl %v\nnodes %s\nseats %s\nmail %v\nfor %v\n",
		s.Seed, s.TTL, strings.Join(s.Nodes, " "), strings.Join(s.Seats, " "), s.Mail, s.For)
	for _, step := range s.Steps {
		fmt.Fprintln(&b, step)
	}
	return b.String()
}

// Parse reads a script.
func Parse(r io.Reader) (Script, error) {
	var s Script
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		if err := s.line(lines.Text()); err != nil {
			return s, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return s, err
	}
	if s.TTL <= 0 || s.Mail <= 0 || s.For <= 0 || len(s.Nodes) == 0 || len(s.Seats) == 0 {
		return s, fmt.Errorf("a script has seed, ttl, nodes, seats, mail and for")
	}
	if !slices.IsSortedFunc(s.Steps, func(a, b Step) int { return int(a.At - b.At) }) {
		return s, fmt.Errorf("the steps are not in the order of their times")
	}
	return s, nil
}

func (s *Script) line(text string) error {
	if about, ok := strings.CutPrefix(text, "#"); ok {
		s.About = append(s.About, strings.TrimSpace(about))
		return nil
	}
	word, args, err := datadriven.ParseLine(text)
	if err != nil || word == "" {
		return err
	}
	var rest []string
	for _, arg := range args {
		rest = append(rest, arg.Key)
	}
	one := strings.Join(rest, " ")
	switch word {
	case "seed":
		s.Seed, err = strconv.ParseUint(one, 10, 64)
	case "ttl":
		s.TTL, err = time.ParseDuration(one)
	case "nodes":
		s.Nodes = rest
	case "seats":
		s.Seats = rest
	case "mail":
		s.Mail, err = time.ParseDuration(one)
	case "for":
		s.For, err = time.ParseDuration(one)
	case "at":
		var step Step
		step, err = parseStep(args)
		s.Steps = append(s.Steps, step)
	default:
		err = fmt.Errorf("no word %q", word)
	}
	return err
}

func parseStep(args []datadriven.CmdArg) (s Step, err error) {
	if len(args) < 2 {
		return s, fmt.Errorf("a step is: at TIME VERB key=value …")
	}
	if s.At, err = time.ParseDuration(args[0].Key); err != nil {
		return s, err
	}
	s.Do = Verb(args[1].Key)
	if !slices.Contains(verbs, s.Do) {
		return s, fmt.Errorf("no verb %q; there are %q", s.Do, verbs)
	}
	for _, arg := range args[2:] {
		value := strings.Join(arg.Vals, " ")
		switch arg.Key {
		case "node":
			s.Node = value
		case "seat":
			s.Seat = value
		case "to":
			s.To = value
		case "stream":
			s.Stream = value
		case "how":
			s.How = value
		case "times":
			s.Times, err = strconv.Atoi(value)
		case "for":
			s.For, err = time.ParseDuration(value)
		default:
			err = fmt.Errorf("no key %q", arg.Key)
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}
