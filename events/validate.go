package events

import (
	"errors"
	"fmt"
)

func tenure(epoch uint64, owner Incarnation) error {
	return errors.Join(positive("epoch", epoch), owner.Valid())
}

func positive(field string, n uint64) error {
	if n == 0 {
		return fmt.Errorf("%s is missing or not above zero", field)
	}
	return nil
}

func present(field, s string) error {
	if s == "" {
		return fmt.Errorf("%s is missing", field)
	}
	return nil
}
