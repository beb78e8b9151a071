package turn

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// WorkKey names the work of a turn by its constituent event ids: the same ids
// give the same key in any order and however often each is named, so a re-run
// carries the key of the run it repeats. No ids, no key: "" is never used to
// find a duplicate (spec W1, W2).
//
// The key is unique per agent, not globally: one event sent to two seats gives
// both the same key.
func WorkKey(eventIDs []string) string {
	if len(eventIDs) == 0 {
		return ""
	}
	ids := slices.Clone(eventIDs)
	slices.Sort(ids)
	return digest(slices.Compact(ids)...)
}

// digest hashes a list of strings so that no two lists share a hash by sharing
// their concatenation: each part is written behind its length.
func digest(parts ...string) string {
	h := sha256.New()
	var length [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}
