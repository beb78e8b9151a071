package events

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"strings"
)

// Fields are payload fields that this build does not know. They are kept, so
// that a newer build's facts survive an older build's hands (L9).
type Fields map[string]json.RawMessage

// Kept holds an event's unknown fields.
type Kept struct {
	Unknown Fields `json:"-"`
}

func (k Kept) kept() Fields         { return k.Unknown }
func (k *Kept) keep(unknown Fields) { k.Unknown = unknown }

// marshalKeep is json.Marshal of v with the unknown fields put back.
func marshalKeep(v any, unknown Fields) ([]byte, error) {
	known, err := json.Marshal(v)
	if err != nil || len(unknown) == 0 {
		return known, err
	}
	all := make(Fields, len(unknown))
	maps.Copy(all, unknown)
	if err := json.Unmarshal(known, &all); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// unmarshalKeep decodes data, one JSON object, into v and returns the fields
// that v has no place for.
func unmarshalKeep(data []byte, v any) (Fields, error) {
	if err := json.Unmarshal(data, v); err != nil {
		return nil, err
	}
	var all Fields
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	for name := range all {
		if knows(reflect.TypeOf(v).Elem(), name) {
			delete(all, name)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

// knows follows encoding/json: embedded structs count as their fields, and
// names match without regard to case.
func knows(t reflect.Type, name string) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			if knows(f.Type, name) {
				return true
			}
			continue
		}
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag != "-" && strings.EqualFold(tag, name) {
			return true
		}
	}
	return false
}

// isObject says whether data is one JSON object, the only payload there is.
func isObject(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) && json.Valid(data)
}

// UnknownOf returns the fields of e that this build does not know, for an
// aggregate whose next event must carry them on.
func UnknownOf(e Event) Fields { return e.kept() }

// Known is e without the fields that this build does not know, for comparing what
// two events say to it.
func Known(e Event) Event {
	known := reflect.New(reflect.TypeOf(e))
	known.Elem().Set(reflect.ValueOf(e))
	known.Interface().(interface{ keep(Fields) }).keep(nil)
	return known.Elem().Interface().(Event)
}
