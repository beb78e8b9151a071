// Package leases measures what taking and keeping a lease costs: the product's
// own way through commands/, a raw publish of the same bytes as the floor below
// it, and the three-write lease of a key-value bucket that it replaces.
//
// Each contender has a connection of its own and makes fresh leases all the time,
// by as many goroutines as the others.
package leases

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/bench/brokers"
	"github.com/seat-tenure/tenure/bench/measure"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
)

// Names of the contenders in figures.
const (
	Raw       = "raw-publish"
	Claim     = "claim"
	ClaimRead = "claim-read-first"
	KV        = "kv-three-writes"
)

const (
	self = events.Incarnation("node-0:5ea7be4c")
	ttl  = 45 * time.Second
)

// unseen is a log clock to which nothing has lapsed.
func unseen(uint64) (time.Duration, bool) { return 0, true }

// Claiming is the product's claim of a seat that is free, as the host makes it:
// it knows the lease from its view of the log, and the append checks that. With
// readFirst it is the claim of a seat that the host does not know to be free.
func Claiming(store *broker.JetStream, readFirst bool) measure.Contender {
	shell := commands.New(broker.NewLog(store), store.Subjects(), self)
	name, claim := Claim, commands.Claim{Preferred: self.NodeID(), TTL: ttl, Protocol: 4, Seen: &aggregates.Lease{}}
	if readFirst {
		name, claim.Seen = ClaimRead, nil
	}
	var n atomic.Int64
	return measure.Contender{Name: name, Do: func(ctx context.Context, _ int) (int, error) {
		_, err := shell.Claim(ctx, events.SeatLease(fmt.Sprintf("%s-%d", name, n.Add(1))), claim, unseen)
		return 1, err
	}}
}

// Publishing is a publish of a claim's bytes, header and data, to a subject of
// its own in a stream with the settings of FLEET, by the client's own call. It
// checks nothing.
func Publishing(ctx context.Context, js jetstream.JetStream, fleet string) (measure.Contender, error) {
	s, err := js.Stream(ctx, fleet)
	if err != nil {
		return measure.Contender{}, err
	}
	cfg := s.CachedInfo().Config
	cfg.Name, cfg.Subjects, cfg.Metadata = "RAW", []string{"raw.>"}, nil
	if _, err := js.CreateStream(ctx, cfg); err != nil {
		return measure.Contender{}, err
	}
	w, err := claimBytes()
	if err != nil {
		return measure.Contender{}, err
	}
	var n atomic.Int64
	return measure.Contender{Name: Raw, Do: func(ctx context.Context, _ int) (int, error) {
		m := &nats.Msg{Subject: fmt.Sprintf("raw.fleet.lease.seat.p-%d.tenure", n.Add(1)), Header: nats.Header(w.Header), Data: w.Data}
		_, err := js.PublishMsg(ctx, m)
		return 1, err
	}}, nil
}

// claimBytes is a claim as it is stored.
func claimBytes() (events.Write, error) {
	subjects, err := events.NewSubjects(brokers.Prefix)
	if err != nil {
		return events.Write{}, err
	}
	const id = "7a1f0c52-3a54-4d2e-9a57-2f6f0d6f1c11"
	m := events.Meta{ID: id, Command: id, Source: self, Time: time.Now(), Epoch: 1}
	return events.Encode(subjects, m, events.LeaseClaimed{
		Lease: events.SeatLease("claim-100000"), Epoch: 1, Owner: self, Preferred: self.NodeID(), TTL: events.MillisOf(ttl), Protocol: 4,
	})
}

// ThreeWrites is the lease that a key-value store gives, as those build it who
// need a fencing token that outlives the lease. The lease is a key in a bucket
// whose age limit is the TTL; a key that expires takes its content along, so the
// token must stand in a second bucket without one, and no write covers both:
//
//  1. create the lease's key, in a claiming state: of two claimants one gets it;
//  2. raise the counter of the seat in the other bucket, from what was read;
//  3. update the lease's key with the token, on the revision of the first write.
func ThreeWrites(ctx context.Context, js jetstream.JetStream, replicas int) (measure.Contender, error) {
	bucket := func(name string, ttl time.Duration) (jetstream.KeyValue, error) {
		return js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name, TTL: ttl, Replicas: replicas, Storage: jetstream.FileStorage})
	}
	leases, err := bucket("leases", ttl)
	if err != nil {
		return measure.Contender{}, err
	}
	epochs, err := bucket("epochs", 0)
	if err != nil {
		return measure.Contender{}, err
	}
	var n atomic.Int64
	return measure.Contender{Name: KV, Do: func(ctx context.Context, _ int) (int, error) {
		key := fmt.Sprintf("seat.k-%d", n.Add(1))
		return 1, threeWrites(ctx, leases, epochs, key)
	}}, nil
}

func threeWrites(ctx context.Context, leases, epochs jetstream.KeyValue, key string) error {
	record := func(epoch uint64, state string) []byte {
		return fmt.Appendf(nil, `{"owner":%q,"epoch":%d,"state":%q,"preferred":%q,"protocol":4}`, self, epoch, state, self.NodeID())
	}
	revision, err := leases.Create(ctx, key, record(0, "claiming"))
	if err != nil {
		return err
	}
	epoch, last := uint64(1), uint64(0)
	switch counter, err := epochs.Get(ctx, key); {
	case err == nil:
		last = counter.Revision()
		if _, err := fmt.Sscan(string(counter.Value()), &epoch); err != nil {
			return err
		}
		epoch++
	case !errors.Is(err, jetstream.ErrKeyNotFound):
		return err
	}
	if _, err := epochs.Update(ctx, key, fmt.Append(nil, epoch), last); err != nil {
		return err
	}
	_, err = leases.Update(ctx, key, record(epoch, "held"), revision)
	return err
}
