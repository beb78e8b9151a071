package badgerstore

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// errDamaged marks everything that only a rebuild can mend.
var errDamaged = errors.New("the projection store cannot be used as it is")

// sealSize is how many bytes of a row's digest stand before it.
const sealSize = 8

// seal puts a digest of key and row before the row, so that neither a flipped
// bit nor a row under another's key passes for the real one.
func seal(key string, row []byte) (sealed []byte, sum uint64) {
	sealed, sum = make([]byte, sealSize, sealSize+len(row)), digest(key, row)
	binary.BigEndian.PutUint64(sealed, sum)
	return append(sealed, row...), sum
}

// unseal returns the row and its seal.
func unseal(key string, sealed []byte) (row []byte, sum uint64, err error) {
	if len(sealed) < sealSize {
		return nil, 0, fmt.Errorf("%w: row %q is %d bytes long", errDamaged, key, len(sealed))
	}
	row, sum = sealed[sealSize:], binary.BigEndian.Uint64(sealed)
	if digest(key, row) != sum {
		return nil, 0, fmt.Errorf("%w: row %q does not match its seal", errDamaged, key)
	}
	return row, sum, nil
}

func digest(key string, row []byte) uint64 {
	both := make([]byte, 0, len(key)+1+len(row))
	both = append(append(append(both, key...), 0), row...)
	sum := sha256.Sum256(both)
	return binary.BigEndian.Uint64(sum[:])
}

// tally sums up all rows but the store's own. It commits with them, so that a
// lost file, or one of another age, shows as a sum that does not fit.
type tally struct {
	Rows int64  `json:"rows"`
	Sum  uint64 `json:"sum"`
}

func (t *tally) add(sum uint64)    { t.Rows, t.Sum = t.Rows+1, t.Sum+sum }
func (t *tally) remove(sum uint64) { t.Rows, t.Sum = t.Rows-1, t.Sum-sum }
