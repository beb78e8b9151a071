package events

import (
	"fmt"
	"strings"
)

// Incarnation is one run of one process: {node_id}:{8 hex}, minted at every
// boot (L1). It is the owner of leases; the node id alone never is.
type Incarnation string

// NodeID returns the stable node id that the incarnation belongs to.
func (i Incarnation) NodeID() string {
	id, _, _ := strings.Cut(string(i), ":")
	return id
}

// Valid says what is wrong with an incarnation, or nil.
func (i Incarnation) Valid() error {
	id, boot, ok := strings.Cut(string(i), ":")
	if !ok || !validToken(id) || len(boot) != 8 || strings.Trim(boot, "0123456789abcdef") != "" {
		return fmt.Errorf("%q is not an incarnation {node_id}:{8 hex digits}", string(i))
	}
	return nil
}
