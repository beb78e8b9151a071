package projections

// A tenure's row stands under its claim's position; two indexes lead to it.

// beginTenure records the tenure that s.Holder has just begun.
func beginTenure(rows Rows, s Seat) error {
	at := descending(s.Holder.Claimed)
	t := Tenure{
		Handle: s.Handle, Epoch: s.Holder.Epoch, Owner: s.Holder.Owner,
		Claimed: s.Holder.Claimed, ClaimedAt: s.Holder.Since,
	}
	for key, row := range map[string]any{
		keyTenures + at:                              t,
		keySeatTenure + s.Handle + "/" + at:          struct{}{},
		keyNodeTenure + s.Holder.NodeID() + "/" + at: struct{}{},
	} {
		if err := put(rows, key, row); err != nil {
			return err
		}
	}
	return nil
}

func endTenure(rows Rows, claimed uint64, how Ended) error {
	return changeTenure(rows, claimed, func(t *Tenure) { t.Ended = &how })
}

func changeTenure(rows Rows, claimed uint64, change func(*Tenure)) error {
	key := keyTenures + descending(claimed)
	t, _, err := get[Tenure](rows, key)
	if err != nil {
		return err
	}
	change(&t)
	return put(rows, key, t)
}
