package events

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
)

// maxRoster bounds what an unpacked roster may take: far above 100,000 seats.
const maxRoster = 64 << 20

// payload renders an event's data.
func payload(e Event) ([]byte, error) {
	if c, ok := e.(CompanyApplied); ok {
		// A roster that says the same already is kept byte for byte: another
		// compressor would pack it otherwise, and a newer build's fields (L9)
		// would be lost.
		if packed, err := unpackRoster(c.Roster); err != nil || !reflect.DeepEqual(packed, c.Seats) {
			if c.Roster, err = packRoster(c.Seats); err != nil {
				return nil, err
			}
		}
		e = c
	}
	return marshalKeep(e, e.kept())
}

// decodeAs decodes a payload into a T that place has given what the subject
// says. Go cannot say that *T has keep, hence the assertion.
func decodeAs[T Event](place func(*T, target)) func(target, []byte) (Event, error) {
	return func(t target, data []byte) (Event, error) {
		var e T
		place(&e, t)
		unknown, err := unmarshalKeep(data, &e)
		if err != nil {
			return nil, err
		}
		any(&e).(interface{ keep(Fields) }).keep(unknown)
		return e, nil
	}
}

// placed is decodeAs for an event whose body places itself.
func placed[T Event, P interface {
	*T
	place(target)
}]() func(target, []byte) (Event, error) {
	return decodeAs(func(e *T, t target) { P(e).place(t) })
}

// then adds to a decoder what its fields cannot say by themselves.
func then[T Event](decode func(target, []byte) (Event, error), check func(T, target) (Event, error)) func(target, []byte) (Event, error) {
	return func(t target, data []byte) (Event, error) {
		e, err := decode(t, data)
		if err != nil {
			return nil, err
		}
		return check(e.(T), t)
	}
}

func openRoster(e CompanyApplied, _ target) (Event, error) {
	var err error
	e.Seats, err = unpackRoster(e.Roster)
	return e, err
}

func underOwnDigest(e TurnCompleted, t target) (Event, error) {
	if Digest(e.EventID) != t.digest {
		return nil, fmt.Errorf("the completion of event %q stands under another event's subject", e.EventID)
	}
	return e, nil
}

// underOwnKey holds parked mail against its subject, which is write-once per
// mail: under another's it would keep that one out of DEAD.
func underOwnKey(e MailParked, t target) (Event, error) {
	if e.deadDigest() != t.digest {
		return nil, fmt.Errorf("the parked mail %d stands under another mail's subject", e.MailSeq)
	}
	return e, nil
}

func packRoster(seats []RosterSeat) ([]byte, error) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if err := json.NewEncoder(z).Encode(seats); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

func unpackRoster(packed []byte) ([]RosterSeat, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("roster: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(z, maxRoster+1))
	if err != nil {
		return nil, fmt.Errorf("roster: %w", err)
	}
	if len(raw) > maxRoster {
		return nil, fmt.Errorf("roster: over %d bytes unpacked", maxRoster)
	}
	var seats []RosterSeat
	if err := json.Unmarshal(raw, &seats); err != nil {
		return nil, fmt.Errorf("roster: %w", err)
	}
	for _, s := range seats {
		if err := ValidHandle(s.Handle); err != nil {
			return nil, fmt.Errorf("roster: %w", err)
		}
	}
	return seats, nil
}
