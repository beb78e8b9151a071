package main

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/seat-tenure/tenure/company"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/turn"
)

// roster is the company as this node last read it from the log: who works on
// which seat. Routing asks it, never the seats that happen to run here (G1).
type roster struct {
	mark turn.Mark
	log  *slog.Logger

	mu       sync.RWMutex // guards what follows
	company  company.Company
	revision uint64
	known    bool
}

func newRoster(mark turn.Mark, log *slog.Logger) *roster { return &roster{mark: mark, log: log} }

// set takes in a revision; an older one than it has changes nothing.
func (r *roster) set(e events.CompanyApplied) error {
	c, err := readCompany(e)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.known || e.Revision > r.revision {
		r.company, r.revision, r.known = c, e.Revision, true
	}
	return nil
}

// current returns the company; known is false before the first one.
func (r *roster) current() (c company.Company, known bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.company, r.known
}

// inForce returns the company and which revision of it that is.
func (r *roster) inForce() (company.Company, uint64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.company, r.revision
}

// applied is the revision in force here, 0 before the first one.
func (r *roster) applied() uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.revision
}

// Agent implements turn.Agents.
func (r *roster) Agent(handle string) (turn.Agent, error) {
	c, _ := r.current()
	role, ok := c.Role(handle)
	if !ok || role.Kind != company.Agent {
		return turn.Agent{}, fmt.Errorf("the company has no agent on seat %q", handle)
	}
	a := turn.Agent{ID: company.AgentID(c.Name, handle)}
	if e := role.Runner.Exec; len(e.Program) > 0 {
		a.Runner = turn.Exec{Program: e.Program, Timeout: e.Timeout, Log: r.log, Mark: r.mark}
	} else {
		a.Runner = turn.Echo{}
	}
	return a, nil
}

// unknownSeatError says that mail cannot go to that handle, and which handles
// were perhaps meant.
type unknownSeatError struct {
	Handle  string
	Human   bool
	Nearest []string
}

func (e *unknownSeatError) Error() string {
	if e.Human {
		return fmt.Sprintf("%q is a person's seat: the company runs no agent on it", e.Handle)
	}
	msg := fmt.Sprintf("the company has no seat %q", e.Handle)
	if len(e.Nearest) > 0 {
		msg += "; did you mean " + strings.Join(e.Nearest, ", ") + "?"
	}
	return msg
}

// addressable says whether mail may be sent to the seat: nil, or an
// *unknownSeatError.
func (r *roster) addressable(handle string) error {
	c, _ := r.current()
	role, ok := c.Role(handle)
	switch {
	case !ok:
		return &unknownSeatError{Handle: handle, Nearest: c.Nearest(handle, 3)}
	case role.Kind != company.Agent:
		return &unknownSeatError{Handle: handle, Human: true}
	}
	return nil
}
