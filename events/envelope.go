package events

import (
	"fmt"
	"strconv"
	"time"
)

// Meta is the envelope of an event: who wrote it, why, on which tenure.
type Meta struct {
	ID          string      // unique; the caller mints it
	Source      Incarnation // the process that wrote it
	Time        time.Time   // that process's wall clock, for people
	Command     string      // one per attempt chain: how a writer knows its own event again
	Causation   string      // id of the event that led to this one
	Correlation string      // id of the work both belong to
	Actor       string      // who asked, on operators' acts
	Reason      string      // why, on operators' acts
	Epoch       uint64      // of the tenure the write rests on; 0 when it rests on none
	FleetSeq    uint64      // outside FLEET: position of that tenure's claim
}

// Recorded is an event as the log has it.
type Recorded struct {
	Stream  Stream
	Seq     uint64
	Subject string
	At      time.Time // broker's wall clock, for people (L6)
	Meta    Meta
	Event   Event
}

// envelopeFields is how many headers an envelope has at most.
const envelopeFields = 13

// header renders the envelope of e. All values share one array: an event that is
// written or read costs one allocation for them, not one each.
func (m Meta) header(e Event) Header {
	h, values := make(Header, envelopeFields), make([]string, 0, envelopeFields)
	set := func(key, value string) {
		if value != "" {
			values = append(values, value)
			n := len(values)
			h[key] = values[n-1 : n : n]
		}
	}
	number := func(key string, value uint64) {
		if value != 0 {
			set(key, strconv.FormatUint(value, 10))
		}
	}
	name := Name(e)
	h.Set(HeaderID, m.ID) // also where it is empty: it must be there
	set(HeaderSpec, "1.0")
	set(HeaderType, name)
	set(HeaderVersion, strconv.Itoa(registry[name].version))
	set(HeaderTime, m.Time.UTC().Format(time.RFC3339Nano))
	set(HeaderSource, string(m.Source))
	set(HeaderCommand, m.Command)
	set(HeaderCausation, m.Causation)
	set(HeaderCorrelation, m.Correlation)
	set(HeaderActor, m.Actor)
	set(HeaderReason, m.Reason)
	number(HeaderEpoch, m.Epoch)
	number(HeaderFleetSeq, m.FleetSeq)
	return h
}

// metaOf reads an envelope back.
func metaOf(h Header) (Meta, error) {
	m := Meta{
		ID: h.Get(HeaderID), Source: Incarnation(h.Get(HeaderSource)), Command: h.Get(HeaderCommand),
		Causation: h.Get(HeaderCausation), Correlation: h.Get(HeaderCorrelation),
		Actor: h.Get(HeaderActor), Reason: h.Get(HeaderReason),
	}
	if m.ID == "" {
		return Meta{}, fmt.Errorf("header %s is missing", HeaderID)
	}
	var err error
	if m.Time, err = time.Parse(time.RFC3339Nano, h.Get(HeaderTime)); err != nil {
		return Meta{}, fmt.Errorf("header %s: %w", HeaderTime, err)
	}
	for _, number := range [...]struct {
		key  string
		into *uint64
	}{{HeaderEpoch, &m.Epoch}, {HeaderFleetSeq, &m.FleetSeq}} {
		if s := h.Get(number.key); s != "" {
			if *number.into, err = strconv.ParseUint(s, 10, 64); err != nil {
				return Meta{}, fmt.Errorf("header %s: %w", number.key, err)
			}
		}
	}
	return m, nil
}
