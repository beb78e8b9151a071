package aggregates_test

import (
	"errors"
	"testing"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// TestDecideApply proves what a document becomes: the next revision; nothing
// where it is in force already, whatever was expected; a refusal that names the
// revision in force where another was expected. Deciding twice changes nothing.
func TestDecideApply(t *testing.T) {
	rev := func(n uint64) *uint64 { return &n }
	third := aggregates.EvolveCompany(aggregates.Company{}, 40, events.CompanyApplied{Revision: 3, Digest: "c"})
	for name, tt := range map[string]struct {
		given    aggregates.Company
		digest   string
		expected *uint64
		want     uint64 // 0: no event
		stale    bool
	}{
		"the first":                       {digest: "a", want: 1},
		"the first, as expected":          {digest: "a", expected: rev(0), want: 1},
		"the first, another was expected": {digest: "a", expected: rev(2), stale: true},
		"the next":                        {given: third, digest: "d", want: 4},
		"the next, as expected":           {given: third, digest: "d", expected: rev(3), want: 4},
		"over an older one":               {given: third, digest: "d", expected: rev(2), stale: true},
		"over one that is not there yet":  {given: third, digest: "d", expected: rev(4), stale: true},
		"over none":                       {given: third, digest: "d", expected: rev(0), stale: true},
		"in force":                        {given: third, digest: "c"},
		"in force, asked for again":       {given: third, digest: "c", expected: rev(2)},
	} {
		got, err := aggregates.DecideApply(tt.given, aggregates.ApplyCompany{Next: events.CompanyApplied{Digest: tt.digest}, Expected: tt.expected})
		var stale *aggregates.StaleRevisionError
		switch {
		case tt.stale:
			if !errors.As(err, &stale) || stale.Current != tt.given.Revision || stale.Expected != *tt.expected || len(got) > 0 {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		case err != nil, tt.want == 0 && len(got) > 0, tt.want > 0 && len(got) != 1:
			t.Errorf("%s: %v, %v", name, got, err)
		case tt.want > 0:
			e := got[0].(events.CompanyApplied)
			if e.Revision != tt.want {
				t.Errorf("%s: revision %d, want %d", name, e.Revision, tt.want)
			}
			now := aggregates.EvolveCompany(tt.given, 50, e)
			if again, err := aggregates.DecideApply(now, aggregates.ApplyCompany{Next: e, Expected: tt.expected}); err != nil || len(again) > 0 {
				t.Errorf("%s, decided twice: %v, %v", name, again, err)
			}
		}
	}
}
