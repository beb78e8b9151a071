package projections

import "strings"

// Saga reads one saga. A seat's are few, so they are looked through.
func (v View) Saga(id string) (s Saga, found bool, err error) {
	handle, _, _ := strings.Cut(id, ".")
	err = walk(v.rows, keySagaSeat+handle+"/", "", func(kr KeyRow) (bool, error) {
		s, err = v.sagaAt(strings.TrimPrefix(kr.Key, keySagaSeat+handle+"/"))
		found = s.ID == id
		return !found, err
	})
	if err != nil || !found {
		return Saga{}, false, err
	}
	return s, true, nil
}

// OpenHandoff reads the handoff that is moving the seat, if one is.
func (v View) OpenHandoff(handle string) (Saga, bool, error) {
	s, found, err := v.Seat(handle)
	if err != nil || !found || s.Handoff == nil {
		return Saga{}, false, err
	}
	return *s.Handoff, true, nil
}

// Sagas lists sagas, newest first.
func (v View) Sagas(f SagaFilter, before uint64, limit int) (Page[Saga], error) {
	prefix := keySagas
	switch {
	case f.Handle != "":
		prefix = keySagaSeat + f.Handle + "/"
	case f.Open != nil && *f.Open:
		prefix = keySagaOpen
	}
	return collect(v.rows, prefix, "", afterPosition(before), limit, func(kr KeyRow) (Saga, bool, error) {
		s, err := v.sagaAt(strings.TrimPrefix(kr.Key, prefix))
		return s, (f.Open == nil || *f.Open == s.Open()) && (f.Kind == "" || f.Kind == s.Kind), err
	})
}

func (v View) sagaAt(requested string) (Saga, error) {
	s, _, err := get[Saga](v.rows, keySagas+requested)
	return s, err
}
