package commands

import (
	"context"

	"github.com/seat-tenure/tenure/events"
)

type actingKey struct{}

type acting struct{ actor, reason string }

// Acting makes what is written under the context it returns an act of that
// operator: the envelopes of lease and handoff events carry the name and the
// reason (design §2). It travels by the context since between the operator and
// the write there is the host, which judges by neither.
func Acting(ctx context.Context, actor, reason string) context.Context {
	return context.WithValue(ctx, actingKey{}, acting{actor, reason})
}

// signed puts the operator into an envelope that names none.
func signed(ctx context.Context, m events.Meta) events.Meta {
	if by, ok := ctx.Value(actingKey{}).(acting); ok && m.Actor == "" {
		m.Actor, m.Reason = by.actor, by.reason
	}
	return m
}
