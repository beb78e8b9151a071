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

// header renders the envelope of e.
func (m Meta) header(e Event) Header {
	h := Header{}
	h.Set(HeaderSpec, "1.0")
	h.Set(HeaderID, m.ID)
	h.Set(HeaderType, Name(e))
	h.Set(HeaderVersion, strconv.Itoa(registry[Name(e)].version))
	h.Set(HeaderTime, m.Time.UTC().Format(time.RFC3339Nano))
	for key, value := range map[string]string{
		HeaderSource: string(m.Source), HeaderCommand: m.Command, HeaderCausation: m.Causation,
		HeaderCorrelation: m.Correlation, HeaderActor: m.Actor, HeaderReason: m.Reason,
	} {
		if value != "" {
			h.Set(key, value)
		}
	}
	for key, value := range map[string]uint64{HeaderEpoch: m.Epoch, HeaderFleetSeq: m.FleetSeq} {
		if value != 0 {
			h.Set(key, strconv.FormatUint(value, 10))
		}
	}
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
	for key, into := range map[string]*uint64{HeaderEpoch: &m.Epoch, HeaderFleetSeq: &m.FleetSeq} {
		if s := h.Get(key); s != "" {
			if *into, err = strconv.ParseUint(s, 10, 64); err != nil {
				return Meta{}, fmt.Errorf("header %s: %w", key, err)
			}
		}
	}
	return m, nil
}
