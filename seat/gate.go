package seat

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// The protocol gate: no seat is claimed while a live presence or seat lease is at
// a lower protocol than this build's (V1). Two builds that disagree about what a
// lease obliges them to do must not run seats of one company side by side. It
// only looks down, so the older build goes on until it has left.
//
// It costs nothing while there is no older build: who is at which protocol stands
// in the view that a pass reads anyway. Only what is found there is asked of the
// log, where alone it stands whether that lease is still alive (V2).

// Older is a lease of a lower protocol, as the view has it.
type Older struct {
	Lease    events.Lease
	Owner    events.Incarnation
	Epoch    uint64
	Protocol int
}

// OlderError: no seat may be claimed before that lease is over (V1).
type OlderError struct{ Older }

func (e *OlderError) Error() string {
	return fmt.Sprintf("%s is held by %s at lease protocol %d, and this build is at a later one: it claims no seat before that lease is over", e.Lease, e.Owner, e.Protocol)
}

// Limits of the gate.
const (
	// maxAsked bounds how many older leases one judgement asks the log about. With
	// more it is not known whether one is alive, so nothing is claimed; what is
	// known to be over is remembered, so a later pass gets further.
	maxAsked = 64
	// gateTimeout bounds how long a judgement waits for the log, or for the view to
	// reach a position.
	gateTimeout = 5 * time.Second
)

var errNotJudged = errors.New("more older leases than one pass asks about; the next pass goes on")

// gate says why no seat may be claimed while these leases of a lower protocol are
// seen: *OlderError, or an error that leaves it unknown. Presences come first.
func (h *Host) gate(ctx context.Context, seen []Older) error {
	if len(seen) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	asked := 0
	for _, o := range seen {
		if h.knownOver(o) {
			continue
		}
		if asked++; asked > maxAsked {
			return errNotJudged
		}
		alive, err := h.alive(ctx, o)
		if err != nil {
			return fmt.Errorf("whether %s, at an older protocol, is alive: %w", o.Lease, err)
		}
		if alive {
			return &OlderError{o}
		}
		h.mu.Lock()
		h.over[o] = true
		h.mu.Unlock()
	}
	return nil
}

// alive says whether the tenure is in force and has not lapsed by the log clock;
// what no sample covers counts as alive (L6).
func (h *Host) alive(ctx context.Context, o Older) (bool, error) {
	now, err := h.deps.Leases.Lease(ctx, o.Lease)
	if err != nil {
		return false, err
	}
	if now.Status == aggregates.LeaseFree || now.Owner != o.Owner || now.Epoch != o.Epoch {
		return false, nil
	}
	age, known := h.deps.LogClock.UnseenFor(now.Last)
	return !known || age < events.LapsesAfter(h.cfg.TTL), nil
}

func (h *Host) knownOver(o Older) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over[o]
}

// gatePass judges the gate for a pass and remembers the verdict for the handoffs
// that are offered until the next one. A refusal ends the pass.
func (h *Host) gatePass(ctx context.Context, seen []Older) error {
	if len(seen) == 0 {
		h.mu.Lock()
		clear(h.over)
		h.mu.Unlock()
	}
	err := h.gate(ctx, seen)
	var older *OlderError
	errors.As(err, &older)
	h.mu.Lock()
	news := older != nil && (h.gated == nil || h.gated.Protocol != older.Protocol || h.gated.Owner != older.Owner)
	h.gated = older
	h.mu.Unlock()
	switch {
	case news:
		h.log.Warn(logOlder, "floor", older.Protocol, keyOwner, older.Owner, "lease", older.Lease.String(),
			"do", "finish the rollout: replace or stop that node; until then this one claims no seats")
	case older != nil:
		h.log.Debug(logOlder, "floor", older.Protocol, keyOwner, older.Owner, "lease", older.Lease.String())
	case err != nil:
		h.log.Warn(logSweepFailed, "what", "judge the protocol gate", keyErr, err)
	}
	return err
}

// gateClaim judges the gate again at a claim's own position: a node of an older
// build that came up before the claim, and after the pass looked, is seen there.
// One that came later finds the seat held.
func (h *Host) gateClaim(ctx context.Context, position uint64) error {
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	seen, err := h.deps.Fleet.OlderNodes(ctx, position)
	if err != nil {
		return fmt.Errorf("judge the protocol gate at position %d: %w", position, err)
	}
	return h.gate(ctx, seen)
}
