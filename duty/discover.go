package duty

import (
	"context"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// maxDiscovered bounds what one sweep registers; the next one goes on.
const maxDiscovered = 1000

// discover registers mailboxes that only the broker knows of (R3): mail is kept
// for a handle whose mailbox no node registered, or was sent after it was
// retired. The sweep that finds one stamps it absent. That the listing fails, or
// a registration does, postpones the discovery only.
func (m *Mailboxes) discover(ctx context.Context, roster Roster, boxes map[string]mailbox) {
	mailed, err := m.deps.Fleet.Mailed(ctx, maxMailed)
	if err != nil {
		m.log.Warn(logNotDiscovered, keyErr, err)
		return
	}
	found := 0
	for _, handle := range mailed {
		b := boxes[handle]
		known := b.record.State == aggregates.MailboxRegistered || b.record.State == aggregates.MailboxRetiring
		if known || events.ValidHandle(handle) != nil {
			continue
		}
		if found++; found > maxDiscovered || ctx.Err() != nil {
			return
		}
		agent, listed := roster.Agents[handle]
		if !listed {
			agent = m.deps.Fleet.AgentID(roster.Company, handle)
		}
		if err := m.deps.Boxes.Register(ctx, handle, agent); err != nil {
			m.log.Warn(logUnregistered, keySeat, handle, keyErr, err)
			continue
		}
		if !listed {
			m.log.Info(logDiscovered, keySeat, handle)
		}
		b.record = aggregates.Mailbox{State: aggregates.MailboxRegistered, AgentID: agent}
		boxes[handle] = b
	}
}

// maxMailed bounds how many handles one listing returns.
const maxMailed = 100_000
