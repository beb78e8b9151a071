package aggregates_test

import (
	"reflect"
	"testing"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// happen decides cmd and applies what happens.
func happen(t *testing.T, s aggregates.Lease, cmd aggregates.LeaseCommand) (aggregates.Lease, events.Event) {
	t.Helper()
	decided, err := aggregates.DecideLease(s, cmd)
	if err != nil || len(decided) != 1 {
		t.Fatalf("%T decided %v (%v), want one event", cmd, decided, err)
	}
	return aggregates.EvolveLease(s, s.Last+10, decided[0]), decided[0]
}

// TestSchedule3EpochComesFromTheLog proves that after epoch 8 was claimed and
// released the next claim is 9: the release keeps the epoch that a lease record
// would have lost, and no projection, which still shows 7, is asked.
func TestSchedule3EpochComesFromTheLog(t *testing.T) {
	s := fold(claimed(7, alpha), released(7, alpha))
	s, _ = happen(t, s, claim(beta))
	s, _ = happen(t, s, release(8, beta))
	newest := aggregates.EvolveLease(aggregates.Lease{}, s.Last, released(8, beta)) // all that a claimant reads
	_, e := happen(t, newest, claim(alpha))
	if got := e.(events.LeaseClaimed).Epoch; got != 9 {
		t.Errorf("the next claim is epoch %d, want 9", got)
	}
}

// TestSchedule2LateReleaseCannotEndASuccessor proves that a release decided
// seconds ago, or repeated after a reconnect, is refused once the lease moved.
func TestSchedule2LateReleaseCannotEndASuccessor(t *testing.T) {
	s := fold(claimed(1, alpha), released(1, alpha), claimed(2, beta))
	if _, err := aggregates.DecideLease(s, release(1, alpha)); refusalOf(err) != ended {
		t.Errorf("got %v, want the tenure to be over", err)
	}
	if s.Owner != beta || s.Epoch != 2 {
		t.Errorf("the lease is %+v, want epoch 2 of %s", s, beta)
	}
}

// TestSchedule19LocalTakesNoClientsLease proves that a store which served a
// fleet yesterday and is local today frees only what names its data directory:
// a client that still lives keeps its leases, whatever its node is called.
func TestSchedule19LocalTakesNoClientsLease(t *testing.T) {
	tell(t, map[string]story{
		"a client's lease":                      {given(claimed(1, beta)), claimLocal(alpha2, "d-1"), nil, held},
		"a client of the same node id":          {given(claimed(1, alpha)), claimLocal(alpha2, "d-1"), nil, held},
		"another data directory's":              {given(claimedLocal(1, alpha, "d-2")), claimLocal(alpha2, "d-1"), nil, held},
		"its own incarnation's":                 {given(claimedLocal(1, alpha, "d-1")), claimLocal(alpha, "d-1"), nil, held},
		"without the lock":                      {given(claimedLocal(1, alpha, "d-1")), claim(alpha2), nil, held},
		"a client's after a local one":          {given(claimedLocal(1, alpha, "d-1"), released(1, alpha), claimed(2, beta)), claimLocal(alpha2, "d-1"), nil, held},
		"a client's, once it lapsed":            {given(claimed(1, beta)), lapsedAndLocal(), lapsedOver(), none},
		"its dead predecessor's":                {given(claimedLocal(1, alpha, "d-1")), claimLocal(alpha2, "d-1"), localOver(10), none},
		"its dead predecessor's after a renew":  {given(claimedLocal(1, alpha, "d-1"), localRenewal()), claimLocal(alpha2, "d-1"), localOver(20), none},
		"its dead predecessor's after a fence":  {given(claimedLocal(1, alpha, "d-1"), localFence()), claimLocal(alpha2, "d-1"), localOver(20), none},
		"no directory at all on either side":    {given(claimed(1, beta)), claimLocal(alpha2, ""), nil, held},
		"its dead predecessor's that gave back": {given(claimedLocal(1, alpha, "d-1"), released(1, alpha)), claimLocal(alpha2, "d-1"), claimedLocal(2, alpha2, "d-1"), none},
	})
}

func lapsedAndLocal() aggregates.ClaimLease {
	c := claimLocal(alpha2, "d-1")
	c.Unseen, c.Known = lapsed, true
	return c
}

func lapsedOver() events.LeaseClaimed {
	return over(claimedLocal(2, alpha2, "d-1"), events.Over{Epoch: 1, Owner: beta, LastSeq: 10, Unseen: 45450})
}

func localOver(last uint64) events.LeaseClaimed {
	return over(claimedLocal(2, alpha2, "d-1"), events.Over{Epoch: 1, Owner: alpha, LastSeq: last, Local: true})
}

func localRenewal() events.LeaseRenewed {
	r := renewed(1, alpha)
	r.Local = "d-1"
	return r
}

func localFence() events.LeaseFenced {
	f := fenced(1, alpha)
	f.Local = "d-1"
	return f
}

// TestCase13RestartUnderOneNodeID proves that a node id is no owner (L1): the
// restarted process can neither renew, release nor report its predecessor's
// tenure, waits like anybody else, and begins a new epoch.
func TestCase13RestartUnderOneNodeID(t *testing.T) {
	s := fold(claimed(1, alpha), renewed(1, alpha))
	for _, cmd := range []aggregates.LeaseCommand{renew(1, alpha2), release(1, alpha2)} {
		if _, err := aggregates.DecideLease(s, cmd); refusalOf(err) != ended {
			t.Errorf("%T by the restarted process: %v, want refused", cmd, err)
		}
	}
	if _, err := aggregates.DecideLease(s, claimUnseen(alpha2, lapsed-1)); refusalOf(err) != held {
		t.Errorf("claim before the lapse: %v, want held", err)
	}
	after, e := happen(t, s, claimUnseen(alpha2, lapsed))
	if got := e.(events.LeaseClaimed); got.Epoch != 2 || got.Over == nil || got.Over.Owner != alpha {
		t.Errorf("got %+v, want epoch 2 over the predecessor", got)
	}
	// The first process was only slow: its tenure is over all the same.
	if _, err := aggregates.DecideLease(after, renew(1, alpha)); refusalOf(err) != ended {
		t.Errorf("renewal by the first process: %v, want refused", err)
	}
}

// TestCase4RenewAfterTakeover proves that a renewal is refused for every state
// in which another owner, or another epoch, came in between.
func TestCase4RenewAfterTakeover(t *testing.T) {
	took := over(claimed(2, beta), events.Over{Epoch: 1, Owner: alpha, LastSeq: 10, Unseen: 45450})
	for name, facts := range map[string][]events.Event{
		"taken over":             {claimed(1, alpha), took},
		"taken over and renewed": {claimed(1, alpha), took, renewed(2, beta)},
		"taken over and fenced":  {claimed(1, alpha), took, fenced(2, beta)},
		"taken over and free":    {claimed(1, alpha), took, released(2, beta)},
		"taken over and back":    {claimed(1, alpha), took, released(2, beta), claimed(3, alpha)},
	} {
		if got, err := aggregates.DecideLease(fold(facts...), renew(1, alpha)); refusalOf(err) != ended || got != nil {
			t.Errorf("%s: %v (%v), want refused", name, got, err)
		}
	}
}

// TestCase10TheFleetsTTLDecides proves L7: the TTL in a claim command is the
// fleet's, and the claim is judged by it and says so.
func TestCase10TheFleetsTTLDecides(t *testing.T) {
	cmd := claimUnseen(beta, lapsed)
	cmd.TTL = 2 * ttl
	if _, err := aggregates.DecideLease(fold(claimed(1, alpha)), cmd); refusalOf(err) != held {
		t.Errorf("with a longer TTL: %v, want held", err)
	}
	_, e := happen(t, fold(claimed(1, alpha)), claimUnseen(beta, lapsed))
	if got := e.(events.LeaseClaimed).TTL; got != events.MillisOf(ttl) {
		t.Errorf("the claim says TTL %v, want %v", got.Duration(), ttl)
	}
}

// TestNewestEventIsEnough proves the one read of design §3 for each kind of
// fact: folding the family's newest event alone gives the state.
func TestNewestEventIsEnough(t *testing.T) {
	before := []events.Event{claimedLocal(6, beta, "d-9"), fenced(6, beta), claimedLocal(7, alpha, "d-1")}
	for _, newest := range []events.Event{claimedLocal(8, beta, "d-2"), localRenewal(), localFence(), released(7, alpha)} {
		all := fold(append(before, newest)...)
		if alone := aggregates.EvolveLease(aggregates.Lease{}, all.Last, newest); !reflect.DeepEqual(alone, all) {
			t.Errorf("%T alone gives %+v, all events %+v", newest, alone, all)
		}
	}
}
