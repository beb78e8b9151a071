package graph_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
)

// Kept implements graph.Mailboxes for worlds that are not asked.
func (w *world) Kept(context.Context, []string) (map[string]graph.Kept, error) { return nil, nil }

// postRoom is a broker that keeps three mails of dev, or does not answer.
type postRoom struct{ err error }

func (p postRoom) Kept(context.Context, []string) (map[string]graph.Kept, error) {
	return map[string]graph.Kept{"dev": {Mails: 3, Oldest: start.Add(50 * time.Minute)}}, p.err
}

func (w *world) askMailboxes(t testing.TB, p postRoom, query string) answer {
	t.Helper()
	deps := w.deps(t)
	deps.Mailboxes = p
	return post(graph.New(deps), request(query, nil))
}

// TestMailboxes proves what the API tells of mailboxes: what waits, what was set
// aside, and how far a removed seat's is; and that what the broker does not say is
// null, neither zero nor an error.
func TestMailboxes(t *testing.T) {
	w := newWorld()
	w.add(t, events.StreamFleet,
		events.MailboxRegistered{Handle: "dev", AgentID: "agent-dev"}, events.MailboxRegistered{Handle: "pm", AgentID: "agent-pm"},
		events.MailboxAbsent{RetirementBody: events.RetirementBody{
			Handle: "pm", Number: 1, Step: events.RetireAbsent, By: nodeA, Company: 1, Since: start, RetiresAt: start.Add(24 * time.Hour),
			Grace: 86400000, Refused: events.RefusedHeld,
		}})
	w.add(t, events.StreamDead, events.MailParked{Handle: "dev", Mailbox: events.Inbox, EventID: "e1", MailSeq: 17, Epoch: 2, Owner: nodeA, Attempts: 25, Reason: "budget"})
	for _, c := range []struct {
		name, query, want string
		err               error
	}{
		{
			"all", `{ m: mailboxes { edges { node { handle state pending oldestAge parked absentSince retiresAt refused retirementId retirementStep } } totalCount } }`,
			`{"m":{"edges":[{"node":{"handle":"dev","state":"ACTIVE","pending":3,"oldestAge":"PT10M","parked":1,"absentSince":null,"retiresAt":null,"refused":null,"retirementId":null,"retirementStep":null}},` +
				`{"node":{"handle":"pm","state":"ABSENT","pending":0,"oldestAge":null,"parked":0,"absentSince":"` + start.Format(time.RFC3339) + `","retiresAt":"` + start.Add(24*time.Hour).Format(time.RFC3339) +
				`","refused":"held","retirementId":"pm.retirement-1","retirementStep":"absent"}}],"totalCount":2}}`, nil,
		},
		{"of one state", `{ m: mailboxes(filter: {state: ABSENT}) { edges { node { handle } } } }`, `{"m":{"edges":[{"node":{"handle":"pm"}}]}}`, nil},
		{"a page", `{ m: mailboxes(first: 1) { edges { node { handle } } pageInfo { hasNextPage } totalCount } }`, `{"m":{"edges":[{"node":{"handle":"dev"}}],"pageInfo":{"hasNextPage":true},"totalCount":null}}`, nil},
		{"one", `{ m: mailbox(handle: "dev") { handle agentId pending } none: mailbox(handle: "qa") { handle } }`, `{"m":{"handle":"dev","agentId":"agent-dev","pending":3},"none":null}`, nil},
		{
			"its saga", `{ m: sagas(kind: RETIREMENT) { edges { node { id kind step handle from to reason by startedAt deadline endedAt outcome cause darkFor } } totalCount } handoffs: sagas(kind: HANDOFF) { totalCount } }`,
			`{"m":{"edges":[{"node":{"id":"pm.retirement-1","kind":"RETIREMENT","step":"absent","handle":"pm","from":null,"to":null,"reason":null,"by":"` + string(nodeA) + `","startedAt":"` + start.Add(3*time.Second).Format(time.RFC3339) +
				`","deadline":"` + start.Add(24*time.Hour).Format(time.RFC3339) + `","endedAt":null,"outcome":null,"cause":"held","darkFor":null}}],"totalCount":1},"handoffs":{"totalCount":0}}`, nil,
		},
		{"not known", `{ m: mailboxes { edges { node { handle pending oldestAge parked } } } }`,
			`{"m":{"edges":[{"node":{"handle":"dev","pending":null,"oldestAge":null,"parked":1}},{"node":{"handle":"pm","pending":null,"oldestAge":null,"parked":0}}]}}`, events.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := w.askMailboxes(t, postRoom{c.err}, c.query)
			if diff := cmp.Diff(c.want, string(got.Data)); diff != "" || len(got.Errors) > 0 {
				t.Errorf("(-want +got):\n%s\n%s", diff, got.Raw)
			}
		})
	}
	for _, call := range []string{`mailboxes(first: 0)`, `mailboxes(after: "x")`} {
		if a := w.askMailboxes(t, postRoom{}, `{ m: `+call+` { totalCount } }`); a.code() != "BAD_REQUEST" {
			t.Errorf("%s: %s", call, a.Raw)
		}
	}
}
