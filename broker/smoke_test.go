package broker_test

import (
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/events"
)

func TestSmoke(t *testing.T) {
	for n, b := range map[string]*natstest.Brokers{"R1": natstest.R1(t), "R3": natstest.R3(t)} {
		t0 := time.Now()
		s := b.Store(0)
		t.Log(n, "open", time.Since(t0))
		f := s.Stream(events.StreamFleet)
		seq, err := f.Append(t.Context(), events.Write{Subject: "crewlet.fleet.company", Data: []byte("{}")})
		t.Log(n, seq, err)
		info, err := f.Info(t.Context())
		t.Log(info, err)
	}
}
