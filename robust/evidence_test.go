package robust_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/seat-tenure/tenure/audit"
	"github.com/seat-tenure/tenure/events"
)

// readSink reads what the agents noted, in the order of time.
func readSink(path string) ([]record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []record
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var r record
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, len(all)+1, err)
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b record) int { return int(a.At - b.At) })
	return all, in.Err()
}

// leaseEvent is an edge of a seat's lease in the log.
type leaseEvent struct {
	seq   uint64
	kind  string // claim, release, fence
	seat  string
	epoch uint64
	owner string
	wrote time.Time // the writer's wall clock
	by    string    // the writer's node
}

// history is what an export says, as far as the checks need it.
type history struct {
	leases      []leaseEvent
	completions map[string]events.TurnCompleted // by seat and event id
	parked      map[string]string               // seat and event id: reason
	last        uint64                          // of FLEET
}

func workID(seat, event string) string { return seat + " " + event }

// readExport reads an export of the log.
func readExport(path string) (*history, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, err := audit.NewReader(bufio.NewReader(f))
	if err != nil {
		return nil, err
	}
	subjects, err := events.NewSubjects(in.Header().Prefix)
	if err != nil {
		return nil, err
	}
	h := &history{completions: map[string]events.TurnCompleted{}, parked: map[string]string{}}
	for {
		entry, err := in.Next()
		if errors.Is(err, io.EOF) {
			return h, nil
		}
		if err != nil {
			return nil, err
		}
		if err := h.add(subjects, entry.Message); err != nil {
			return nil, err
		}
	}
}

func (h *history) add(subjects events.Subjects, m events.Message) error {
	if m.Stream == events.StreamFleet {
		h.last = max(h.last, m.Seq)
	}
	r, err := events.Decode(subjects, m)
	if err != nil {
		return err
	}
	edge := func(kind string, l events.Lease, epoch uint64, owner events.Incarnation) {
		if l.Kind == events.KindSeat {
			h.leases = append(h.leases, leaseEvent{r.Seq, kind, l.ID, epoch, string(owner), r.Meta.Time, r.Meta.Source.NodeID()})
		}
	}
	switch e := r.Event.(type) {
	case events.LeaseClaimed:
		edge(opClaim, e.Lease, e.Epoch, e.Owner)
	case events.LeaseReleased:
		edge(opRelease, e.Lease, e.Epoch, e.Owner)
	case events.LeaseFenced:
		edge(opFence, e.Lease, e.Epoch, e.Owner)
	case events.TurnCompleted:
		h.completions[workID(e.Handle, e.EventID)] = e
	case events.MailParked:
		h.parked[workID(e.Handle, e.EventID)] = fmt.Sprint(e.Reason)
	}
	return nil
}
