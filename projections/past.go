package projections

import "strings"

// Tenures lists tenures of seats, newest first. With both filters set it reads
// the seat's tenures and leaves out the other nodes'.
func (v View) Tenures(f TenureFilter, before uint64, limit int) (Page[Tenure], error) {
	prefix := keyTenures
	switch {
	case f.Handle != "":
		prefix = keySeatTenure + f.Handle + "/"
	case f.Node != "":
		prefix = keyNodeTenure + f.Node + "/"
	}
	return collect(v.rows, prefix, "", afterPosition(before), limit, func(kr KeyRow) (Tenure, bool, error) {
		t, err := v.tenureAt(strings.TrimPrefix(kr.Key, prefix))
		return t, f.Node == "" || t.NodeID() == f.Node, err
	})
}

func (v View) tenureAt(claimed string) (Tenure, error) {
	t, _, err := get[Tenure](v.rows, keyTenures+claimed)
	return t, err
}

// HolderAt tells who held the seat at that instant, by the log's order alone.
// It answers *BeforeHistoryError before the first event that the log has kept,
// and *NotYetError for a position that was not read, or when nothing was.
func (v View) HolderAt(handle string, at PointInTime) (Holding, error) {
	head, err := v.AsOf()
	if err != nil {
		return Holding{}, err
	}
	position, err := v.resolve(head, at)
	if err != nil {
		return Holding{}, err
	}
	prefix := keySeatTenure + handle + "/"
	page, err := v.rows.Scan(prefix, prefix+descending(position+1), 1)
	if err != nil || len(page) == 0 {
		return Holding{Position: position}, err
	}
	t, err := v.tenureAt(strings.TrimPrefix(page[0].Key, prefix))
	if err != nil || (t.Ended != nil && t.Ended.Position <= position) {
		return Holding{Position: position}, err
	}
	return Holding{Position: position, Tenure: &t}, nil
}

func (v View) resolve(head AsOf, at PointInTime) (uint64, error) {
	position := at.position
	if head.Position == 0 {
		return 0, &NotYetError{}
	}
	if at.byTime {
		var err error
		if position, err = positionAt(v.rows, at.time); err != nil {
			return 0, err
		}
	}
	if position < head.First {
		return 0, &BeforeHistoryError{First: head.First}
	}
	if position > head.Position {
		return 0, &NotYetError{Position: head.Position}
	}
	return position, nil
}
