package turn_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seat-tenure/tenure/turn"
)

// The key depends on which ids there are and on nothing else (W1): not on their
// order, not on repeats.
func TestW1WorkKeyIsOfTheSetOfIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.String(), 1, 6).Draw(t, "ids")
		shuffled := rapid.Permutation(append(slices.Clone(ids), ids[0])).Draw(t, "shuffled")
		if got, want := turn.WorkKey(shuffled), turn.WorkKey(ids); got != want {
			t.Fatalf("%q and %q differ: %s, %s", shuffled, ids, got, want)
		}
		more := append(slices.Clone(ids), rapid.StringMatching(`new-[a-z]{8}`).Draw(t, "new"))
		if !slices.Contains(ids, more[len(more)-1]) && turn.WorkKey(more) == turn.WorkKey(ids) {
			t.Fatalf("%q and %q share a key", more, ids)
		}
	})
}

// No ids, no key: an empty key is never used to find a duplicate (W2).
func TestW1NoIDsNoKey(t *testing.T) {
	if got := turn.WorkKey(nil); got != "" {
		t.Errorf("got %q", got)
	}
}

// The key is stored, so its value may never change; and ids that run into each
// other do not collide.
func TestW1WorkKeyIsStable(t *testing.T) {
	const want = "8d5d57a823dae47b1a1cc846f61d5b96b081a9f05272eecdb434d5fd931d43d9"
	if got := turn.WorkKey([]string{"e1", "e2"}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if turn.WorkKey([]string{"e1e", "2"}) == turn.WorkKey([]string{"e1", "e2"}) {
		t.Error("two lists of one concatenation share a key")
	}
}
