package aggregates_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

const (
	alpha  events.Incarnation = "node-0:0badcafe"
	alpha2 events.Incarnation = "node-0:0badcaf2" // the same node, started again
	beta   events.Incarnation = "node-1:5eedf00d"

	ttl    = 45 * time.Second
	lapsed = ttl + 450*time.Millisecond // TTL and bound
)

var dev = events.SeatLease("dev")

// Facts, as short as a story needs them.
func claimed(epoch uint64, owner events.Incarnation) events.LeaseClaimed {
	return events.LeaseClaimed{Lease: dev, Epoch: epoch, Owner: owner, TTL: events.MillisOf(ttl), Protocol: 4}
}

func claimedLocal(epoch uint64, owner events.Incarnation, local string) events.LeaseClaimed {
	c := claimed(epoch, owner)
	c.Local = local
	return c
}

func over(c events.LeaseClaimed, o events.Over) events.LeaseClaimed {
	c.Over = &o
	return c
}

func renewed(epoch uint64, owner events.Incarnation) events.LeaseRenewed {
	return events.LeaseRenewed{Lease: dev, Epoch: epoch, Owner: owner}
}

func released(epoch uint64, owner events.Incarnation) events.LeaseReleased {
	return events.LeaseReleased{Lease: dev, Epoch: epoch, Owner: owner, Reason: events.ReasonDrain}
}

func fenced(epoch uint64, owner events.Incarnation) events.LeaseFenced {
	return events.LeaseFenced{Lease: dev, Epoch: epoch, Owner: owner, Reason: "sick", By: "ops"}
}

// Commands.
func claim(owner events.Incarnation) aggregates.ClaimLease {
	return aggregates.ClaimLease{Lease: dev, Owner: owner, TTL: ttl, Protocol: 4}
}

func claimUnseen(owner events.Incarnation, unseen time.Duration) aggregates.ClaimLease {
	c := claim(owner)
	c.Unseen, c.Known = unseen, true
	return c
}

func claimLocal(owner events.Incarnation, dir string) aggregates.ClaimLease {
	c := claim(owner)
	c.Local, c.DeadLocal = dir, dir
	return c
}

func renew(epoch uint64, owner events.Incarnation) aggregates.RenewLease {
	return aggregates.RenewLease{Lease: dev, Owner: owner, Epoch: epoch}
}

func release(epoch uint64, owner events.Incarnation) aggregates.ReleaseLease {
	return aggregates.ReleaseLease{Lease: dev, Owner: owner, Epoch: epoch, Reason: events.ReasonDrain}
}

func fence(epoch uint64) aggregates.FenceLease {
	return aggregates.FenceLease{Lease: dev, Epoch: epoch, Reason: "sick", By: "ops"}
}

// Refusals that a story may end in.
type refusal int

const (
	none refusal = iota
	held
	ended
	fencedTwice
	reserved
	notReserved
)

func refusalOf(err error) refusal {
	var h *aggregates.HeldError
	var e *aggregates.EndedError
	var f *aggregates.FencedTwiceError
	var r *aggregates.ReservedError
	var n *aggregates.NotReservedError
	switch {
	case errors.As(err, &r):
		return reserved
	case errors.As(err, &n):
		return notReserved
	case errors.As(err, &h):
		return held
	case errors.As(err, &e):
		return ended
	case errors.As(err, &f):
		return fencedTwice
	}
	return none
}

// fold applies facts that stand at sequences 10, 20, 30 and so on.
func fold(given ...events.Event) aggregates.Lease {
	var s aggregates.Lease
	for i, e := range given {
		s = aggregates.EvolveLease(s, uint64(10*(i+1)), e)
	}
	return s
}

// story is one row: what happened, what is asked, what happens then.
type story struct {
	given   []events.Event
	when    aggregates.LeaseCommand
	then    events.Event // nil: nothing happens
	refused refusal
}

func given(facts ...events.Event) []events.Event { return facts }

func tell(t *testing.T, stories map[string]story) {
	t.Helper()
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			got, err := aggregates.DecideLease(fold(s.given...), s.when)
			if refusalOf(err) != s.refused || (s.refused == none && err != nil) {
				t.Fatalf("refused with %v, want refusal %d", err, s.refused)
			}
			var want []events.Event
			if s.then != nil {
				want = []events.Event{s.then}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// TestClaim proves when a tenure may begin (L2, L3, L6): over a free lease, or
// with the evidence that the one before had lapsed, written into the claim.
func TestClaim(t *testing.T) {
	tell(t, map[string]story{
		"a lease nobody ever held":              {nil, claim(alpha), claimed(1, alpha), none},
		"after a release":                       {given(claimed(1, alpha), released(1, alpha)), claim(beta), claimed(2, beta), none},
		"after a release, by the same owner":    {given(claimed(1, alpha), released(1, alpha)), claim(alpha), claimed(2, alpha), none},
		"after the release of a fenced tenure":  {given(claimed(1, alpha), fenced(1, alpha), released(1, alpha)), claim(beta), claimed(2, beta), none},
		"of a held lease, with no sample":       {given(claimed(1, alpha)), claim(beta), nil, held},
		"of its own lease, with no sample":      {given(claimed(1, alpha)), claim(alpha), nil, held},
		"of a held lease a moment too early":    {given(claimed(1, alpha)), claimUnseen(beta, lapsed-1), nil, held},
		"of a held lease after the TTL alone":   {given(claimed(1, alpha)), claimUnseen(beta, ttl), nil, held},
		"of a fenced lease a moment too early":  {given(claimed(1, alpha), fenced(1, alpha)), claimUnseen(beta, lapsed-1), nil, held},
		"unseen for long, but by no sample":     {given(claimed(1, alpha)), aggregates.ClaimLease{Lease: dev, Owner: beta, TTL: ttl, Unseen: time.Hour}, nil, held},
		"of a lapsed lease":                     {given(claimed(1, alpha)), claimUnseen(beta, lapsed), over(claimed(2, beta), events.Over{Epoch: 1, Owner: alpha, LastSeq: 10, Unseen: 45450}), none},
		"of a lease that lapsed after renewals": {given(claimed(1, alpha), renewed(1, alpha)), claimUnseen(beta, time.Hour), over(claimed(2, beta), events.Over{Epoch: 1, Owner: alpha, LastSeq: 20, Unseen: 3600000}), none},
		"of its own lapsed lease (L3)":          {given(claimed(1, alpha)), claimUnseen(alpha, lapsed), over(claimed(2, alpha), events.Over{Epoch: 1, Owner: alpha, LastSeq: 10, Unseen: 45450}), none},
		"of a fenced lease that lapsed": {given(claimed(1, alpha), fenced(1, alpha)), claimUnseen(beta, lapsed),
			over(claimed(2, beta), events.Over{Epoch: 1, Owner: alpha, LastSeq: 20, Unseen: 45450}), none},
		"after gaps in the epochs (L2)": {given(claimed(41, alpha), released(41, alpha)), claim(beta), claimed(42, beta), none},
	})
}

// TestRenew proves L3 and L8: only the tenure in force is renewed; all else is
// refused with what stands now, and is not an answer about the store.
func TestRenew(t *testing.T) {
	tell(t, map[string]story{
		"the tenure in force":         {given(claimed(1, alpha)), renew(1, alpha), renewed(1, alpha), none},
		"again":                       {given(claimed(1, alpha), renewed(1, alpha)), renew(1, alpha), renewed(1, alpha), none},
		"nothing":                     {nil, renew(1, alpha), nil, ended},
		"after its release":           {given(claimed(1, alpha), released(1, alpha)), renew(1, alpha), nil, ended},
		"after its fence":             {given(claimed(1, alpha), fenced(1, alpha)), renew(1, alpha), nil, ended},
		"after a successor's claim":   {given(claimed(1, alpha), over(claimed(2, beta), events.Over{})), renew(1, alpha), nil, ended},
		"after its own later claim":   {given(claimed(1, alpha), over(claimed(2, alpha), events.Over{})), renew(1, alpha), nil, ended},
		"an epoch to come":            {given(claimed(1, alpha)), renew(2, alpha), nil, ended},
		"another's tenure":            {given(claimed(1, alpha)), renew(1, beta), nil, ended},
		"another's with its own node": {given(claimed(1, alpha)), renew(1, alpha2), nil, ended},
	})
}

// TestReport proves that a node's report stands on its presence as a renewal
// does (L3, L8), and that it needs no older event to be judged by, nor leaves
// one that the next command would need.
func TestReport(t *testing.T) {
	node := events.NodeLease("node-0")
	facts := events.NodeFacts{Draining: true, SeatsHeld: new(2)}
	report := aggregates.ReportNode{Lease: node, Owner: alpha, Epoch: 1, Node: facts}
	reported := events.NodeReported{Lease: node, Epoch: 1, Owner: alpha, Node: facts}
	local := reported
	local.Local = "d-1"
	tell(t, map[string]story{
		"under the presence in force":  {given(claimed(1, alpha)), report, reported, none},
		"the same again":               {given(claimed(1, alpha), reported), report, reported, none},
		"a renewal after it":           {given(claimed(1, alpha), reported), renew(1, alpha), renewed(1, alpha), none},
		"a release after it":           {given(claimed(1, alpha), reported), release(1, alpha), released(1, alpha), none},
		"a claim over it":              {given(reported), claimUnseen(beta, lapsed), over(claimed(2, beta), events.Over{Epoch: 1, Owner: alpha, LastSeq: 10, Unseen: 45450}), none},
		"a claim too early after it":   {given(reported), claimUnseen(beta, lapsed-1), nil, held},
		"with the data directory":      {given(claimedLocal(1, alpha, "d-1")), report, local, none},
		"after its release":            {given(claimed(1, alpha), released(1, alpha)), report, nil, ended},
		"after its fence":              {given(claimed(1, alpha), fenced(1, alpha)), report, nil, ended},
		"after another's claim":        {given(claimed(1, alpha), over(claimed(2, beta), events.Over{})), report, nil, ended},
		"of another run of the node's": {given(claimed(1, alpha2)), report, nil, ended},
		"of a node that is not there":  {nil, report, nil, ended},
	})
}

// TestRelease proves who may end a tenure, that a repeated release changes
// nothing, and that a fenced holder can still free the lease at once.
func TestRelease(t *testing.T) {
	tell(t, map[string]story{
		"the tenure in force":         {given(claimed(1, alpha), renewed(1, alpha)), release(1, alpha), released(1, alpha), none},
		"the tenure that is fenced":   {given(claimed(1, alpha), fenced(1, alpha)), release(1, alpha), released(1, alpha), none},
		"again":                       {given(claimed(1, alpha), released(1, alpha)), release(1, alpha), nil, none},
		"another's release again":     {given(claimed(1, alpha), released(1, alpha)), release(1, beta), nil, ended},
		"an older one again":          {given(claimed(1, alpha), released(1, alpha), claimed(2, alpha), released(2, alpha)), release(1, alpha), nil, ended},
		"nothing":                     {nil, release(1, alpha), nil, ended},
		"after a successor's claim":   {given(claimed(1, alpha), over(claimed(2, beta), events.Over{})), release(1, alpha), nil, ended},
		"another's tenure":            {given(claimed(1, alpha)), release(1, beta), nil, ended},
		"another run's of one's node": {given(claimed(1, alpha)), release(1, alpha2), nil, ended},
	})
}

// TestFence proves an operator's fence (design §3): of the tenure in force, and
// once, since a second would push out when a successor may claim.
func TestFence(t *testing.T) {
	tell(t, map[string]story{
		"the tenure in force":   {given(claimed(1, alpha), renewed(1, alpha)), fence(1), fenced(1, alpha), none},
		"again":                 {given(claimed(1, alpha), fenced(1, alpha)), fence(1), nil, fencedTwice},
		"a released tenure":     {given(claimed(1, alpha), released(1, alpha)), fence(1), nil, ended},
		"a tenure that moved":   {given(claimed(1, alpha), over(claimed(2, beta), events.Over{})), fence(1), nil, ended},
		"an epoch to come":      {given(claimed(1, alpha)), fence(2), nil, ended},
		"nothing":               {nil, fence(1), nil, ended},
		"the next tenure after": {given(claimed(1, alpha), fenced(1, alpha), over(claimed(2, beta), events.Over{})), fence(2), fenced(2, beta), none},
	})
}

// TestClaimCarriesWhatReadersKeep proves that everything a claimant brings is in
// its claim, and what a holder under local coordination brings in each of its
// events: the family's newest alone must tell (design §3).
func TestClaimCarriesWhatReadersKeep(t *testing.T) {
	node := events.NodeLease("node-0")
	facts := &events.NodeFacts{Roles: []string{"seats"}, Labels: map[string]string{"zone": "a"}}
	cmd := aggregates.ClaimLease{Lease: node, Owner: alpha, Preferred: "node-0", TTL: ttl, Protocol: 4, Local: "d-1", Node: facts}
	got, err := aggregates.DecideLease(aggregates.Lease{}, cmd)
	want := events.LeaseClaimed{Lease: node, Epoch: 1, Owner: alpha, Preferred: "node-0", TTL: 45000, Protocol: 4, Local: "d-1", Node: facts}
	if err != nil || !reflect.DeepEqual(got, []events.Event{want}) {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
	s := fold(want)
	for name, cmd := range map[string]aggregates.LeaseCommand{
		"renewal": aggregates.RenewLease{Lease: node, Owner: alpha, Epoch: 1},
		"report":  aggregates.ReportNode{Lease: node, Owner: alpha, Epoch: 1},
		"fence":   aggregates.FenceLease{Lease: node, Epoch: 1, Reason: "r", By: "b"},
	} {
		decided, err := aggregates.DecideLease(s, cmd)
		if err != nil {
			t.Fatal(err)
		}
		if next := aggregates.EvolveLease(aggregates.Lease{}, 20, decided[0]); next.Local != "d-1" {
			t.Errorf("after its %s the lease names data directory %q, want d-1", name, next.Local)
		}
	}
}

// TestRefusalsSayWhatStands proves that a refusal names who has the lease and
// since which event, so that a person and the sweep can act on it.
func TestRefusalsSayWhatStands(t *testing.T) {
	_, err := aggregates.DecideLease(fold(claimed(7, alpha), fenced(7, alpha)), claim(beta))
	var h *aggregates.HeldError
	if !errors.As(err, &h) || !reflect.DeepEqual(*h, aggregates.HeldError{Lease: dev, Owner: alpha, Epoch: 7, Last: 20, Fenced: true}) {
		t.Errorf("got %+v, want the fenced tenure of epoch 7 at 20", err)
	}
	_, err = aggregates.DecideLease(fold(claimed(8, beta)), renew(7, alpha))
	if got, want := err.Error(), "the tenure of seat:dev at epoch 7 is over: node-1:5eedf00d has epoch 8"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_, err = aggregates.DecideLease(fold(claimed(7, alpha), released(7, alpha)), fence(7))
	if got, want := err.Error(), "the tenure of seat:dev at epoch 7 is over: nobody holds it"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
