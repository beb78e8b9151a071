package aggregates_test

import (
	"errors"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

const (
	gamma events.Incarnation = "node-2:00c0ffee"
	beta2 events.Incarnation = "node-1:5eedf002" // beta's node, started again

	reservation = 5 * time.Second
)

// handedOver is a release that reserves the seat.
func handedOver(epoch uint64, owner, to events.Incarnation, saga string) events.LeaseReleased {
	r := released(epoch, owner)
	r.Successor, r.ReservedFor, r.Saga = to, events.MillisOf(reservation), saga
	return r
}

func handOver(epoch uint64, owner, to events.Incarnation, saga string) aggregates.ReleaseLease {
	r := release(epoch, owner)
	r.Successor, r.ReservedFor, r.Saga = to, reservation, saga
	return r
}

func declined(epoch uint64, owner, by events.Incarnation) events.LeaseDeclined {
	return events.LeaseDeclined{Lease: dev, Epoch: epoch, Owner: owner, By: by, Reason: events.DeclineBehind, Saga: "dev.1"}
}

func decline(epoch uint64, by events.Incarnation) aggregates.DeclineLease {
	return aggregates.DeclineLease{Lease: dev, By: by, Epoch: epoch, Reason: events.DeclineBehind}
}

func claimFor(owner events.Incarnation, saga string) aggregates.ClaimLease {
	c := claim(owner)
	c.Saga = saga
	return c
}

func claimedFor(epoch uint64, owner events.Incarnation, saga string) events.LeaseClaimed {
	c := claimed(epoch, owner)
	c.Saga = saga
	return c
}

func waited(c events.LeaseClaimed, reservedFor events.Incarnation, last uint64, unseen time.Duration) events.LeaseClaimed {
	c.Waited = &events.Waited{Successor: reservedFor, LastSeq: last, Unseen: events.MillisOf(unseen)}
	return c
}

// TestReservation proves design §5: a release can name a successor, who alone
// may claim until the reserved time has gone by behind the log's end; a claim
// past it shows the evidence; the successor's may name its saga, which no other
// claim can.
func TestReservation(t *testing.T) {
	free := given(claimed(1, alpha), handedOver(1, alpha, beta, "dev.1"))
	named := claimUnseen(gamma, time.Hour)
	named.Saga = "dev.1"
	lapsedNamed := claimUnseen(beta, time.Hour)
	lapsedNamed.Saga = "dev.1"
	unsampled := claim(gamma)
	unsampled.Unseen = time.Hour
	tell(t, map[string]story{
		"released to a successor":              {given(claimed(1, alpha)), handOver(1, alpha, beta, "dev.1"), handedOver(1, alpha, beta, "dev.1"), none},
		"released to a successor again":        {free, handOver(1, alpha, beta, "dev.1"), nil, none},
		"a fenced tenure to a successor":       {given(claimed(1, alpha), fenced(1, alpha)), handOver(1, alpha, beta, "dev.1"), handedOver(1, alpha, beta, "dev.1"), none},
		"claimed by the successor":             {free, claim(beta), claimed(2, beta), none},
		"claimed by it for the saga (P2)":      {free, claimFor(beta, "dev.1"), claimedFor(2, beta, "dev.1"), none},
		"claimed by it late":                   {free, lapsedNamed, claimedFor(2, beta, "dev.1"), none},
		"claimed by it for another saga":       {free, claimFor(beta, "dev.2"), nil, notReserved},
		"claimed by another":                   {free, claim(gamma), nil, reserved},
		"claimed by the source":                {free, claim(alpha), nil, reserved},
		"claimed by the successor's next run":  {free, claim(beta2), nil, reserved},
		"claimed a moment too early":           {free, claimUnseen(gamma, reservation-1), nil, reserved},
		"claimed by no sample":                 {free, unsampled, nil, reserved},
		"claimed past the reservation":         {free, claimUnseen(gamma, reservation), waited(claimed(2, gamma), beta, 20, reservation), none},
		"claimed past it, by the source":       {free, claimUnseen(alpha, time.Minute), waited(claimed(2, alpha), beta, 20, time.Minute), none},
		"claimed past it in the saga's name":   {free, named, nil, notReserved},
		"claimed for a saga, of a plain lease": {given(claimed(1, alpha), released(1, alpha)), claimFor(beta, "dev.1"), nil, notReserved},
		"claimed for a saga, of a held lease":  {given(claimed(1, alpha)), claimFor(beta, "dev.1"), nil, notReserved},
		"claimed for a saga, of a lapsed one":  {given(claimed(1, alpha)), lapsedNamed, nil, notReserved},
		"fenced while nobody holds it":         {free, fence(1), nil, ended},
		"renewed by the successor":             {free, renew(1, beta), nil, ended},
	})
}

// TestDecline proves that the successor, and nobody else, ends its reservation,
// and that then everybody may claim at once.
func TestDecline(t *testing.T) {
	free := given(claimed(1, alpha), handedOver(1, alpha, beta, "dev.1"))
	over := append(free[:2:2], declined(1, alpha, beta))
	tell(t, map[string]story{
		"by the successor":                  {free, decline(1, beta), declined(1, alpha, beta), none},
		"again":                             {over, decline(1, beta), nil, none},
		"by another":                        {free, decline(1, gamma), nil, notReserved},
		"by the source":                     {free, decline(1, alpha), nil, notReserved},
		"by nobody":                         {given(claimed(1, alpha), released(1, alpha)), decline(1, ""), nil, notReserved},
		"by its next run":                   {free, decline(1, beta2), nil, notReserved},
		"of another epoch":                  {free, decline(2, beta), nil, notReserved},
		"of a plain release":                {given(claimed(1, alpha), released(1, alpha)), decline(1, beta), nil, notReserved},
		"after its own claim":               {append(free[:2:2], claimed(2, beta)), decline(1, beta), nil, notReserved},
		"after somebody's claim":            {append(free[:2:2], claimed(2, gamma)), decline(1, beta), nil, notReserved},
		"claimed by another at once":        {over, claim(gamma), claimed(2, gamma), none},
		"claimed by who declined":           {over, claim(beta), claimed(2, beta), none},
		"claimed for the saga all the same": {over, claimFor(beta, "dev.1"), nil, notReserved},
		"the release repeated":              {over, handOver(1, alpha, beta, "dev.1"), nil, none},
	})
	if got, want := aggregates.EvolveLease(aggregates.Lease{}, 30, declined(1, alpha, beta)), fold(over...); got != want {
		t.Errorf("the decline alone gives %+v, all give %+v", got, want)
	}
}

// TestReservationRefusalsSayWhen proves that a sweep can act on the refusal: it
// names the event whose age decides, and the age.
func TestReservationRefusalsSayWhen(t *testing.T) {
	s := fold(claimed(1, alpha), handedOver(1, alpha, beta, "dev.1"))
	_, err := aggregates.DecideLease(s, claim(gamma))
	var r *aggregates.ReservedError
	if !errors.As(err, &r) || *r != (aggregates.ReservedError{Lease: dev, Successor: beta, Last: 20, For: reservation}) {
		t.Errorf("got %+v, want %s's reservation of %v since 20", err, beta, reservation)
	}
	for want, s := range map[string]aggregates.Lease{
		"seat:dev is not reserved for node-2:00c0ffee: handoff \"dev.1\" reserves it for node-1:5eedf00d": s,
		"seat:dev is not reserved for node-2:00c0ffee: node-0:0badcafe has epoch 1":                       fold(claimed(1, alpha)),
		"seat:dev is not reserved for node-2:00c0ffee: it is free for all":                                fold(claimed(1, alpha), released(1, alpha)),
	} {
		if _, err := aggregates.DecideLease(s, decline(1, gamma)); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
