package sim_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/sim"
)

// TestScriptsAreText proves that what is drawn is a function of its seed, and
// survives being written down and read again: what a seed did can be kept.
func TestScriptsAreText(t *testing.T) {
	verbs := map[sim.Verb]bool{}
	for seed := range uint64(200) {
		s := sim.Draw(seed)
		if !reflect.DeepEqual(s, sim.Draw(seed)) {
			t.Fatalf("seed %d gives one script and then another", seed)
		}
		again, err := sim.Parse(strings.NewReader(s.String()))
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("seed %d: written and read it is another (%v)\n%v\n%v", seed, err, s, again)
		}
		for _, step := range s.Steps {
			verbs[step.Do] = true
		}
	}
	if len(verbs) < 22 {
		t.Errorf("200 seeds know only %d verbs: %v", len(verbs), verbs)
	}
}

// TestParseRefuses proves that a story which says something else than its writer
// meant is not played.
func TestParseRefuses(t *testing.T) {
	head := "seed 1\nttl 15s\nnodes a\nseats s1\nmail 1s\nfor 1m\n"
	for _, bad := range []string{
		"", "seed 1\n", head + "at 1s explode node=a\n", head + "at 1s cut node=a length=3s\n", head + "at soon cut node=a\n",
		head + "at 1s cut node=a for=long\n", head + "when 1s cut node=a\n", head + "at 2s cut node=a for=1s\nat 1s cut node=a for=1s\n", head + "at 1s\n",
	} {
		if s, err := sim.Parse(strings.NewReader(bad)); err == nil {
			t.Errorf("this was read as a script:\n%s\n%+v", bad, s)
		}
	}
}

// TestMinimise proves that what is left of a script fails still, and that nothing
// of it can be left out.
func TestMinimise(t *testing.T) {
	s := sim.Script{}
	for i := range 40 {
		s.Steps = append(s.Steps, sim.Step{At: time.Duration(i)})
	}
	needed := []time.Duration{3, 17, 18, 39}
	fails := func(s sim.Script) bool {
		for _, at := range needed {
			if !slices.ContainsFunc(s.Steps, func(step sim.Step) bool { return step.At == at }) {
				return false
			}
		}
		return true
	}
	least := sim.Minimise(s, fails)
	var got []time.Duration
	for _, step := range least.Steps {
		got = append(got, step.At)
	}
	if !slices.Equal(got, needed) {
		t.Errorf("left are %v, needed are %v", got, needed)
	}
	if len(s.Steps) != 40 {
		t.Error("the script itself was changed")
	}
}
