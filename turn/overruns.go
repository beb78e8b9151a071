package turn

import (
	"maps"
	"slices"
	"sync"
)

// overRuns are runs that have ended and whose mail is still to be freed.
type overRuns struct {
	mu   sync.Mutex
	runs map[string]struct{} // guarded by mu
}

func (o *overRuns) add(run string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.runs == nil {
		o.runs = map[string]struct{}{}
	}
	o.runs[run] = struct{}{}
}

func (o *overRuns) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.runs))
}

func (o *overRuns) done(run string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.runs, run)
}
