// Package rowstest gives rows in memory and the contract that every store's
// rows keep. Memory is for one goroutine.
package rowstest

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/seat-tenure/tenure/projections"
)

// Memory is the simplest Rows there is.
type Memory map[string][]byte

var _ projections.Rows = Memory{}

// Get returns a copy, so that nobody changes a row behind Put's back.
func (m Memory) Get(key string) ([]byte, bool, error) {
	row, found := m[key]
	return bytes.Clone(row), found, nil
}

// Put replaces the row under key.
func (m Memory) Put(key string, row []byte) error {
	m[key] = bytes.Clone(row)
	return nil
}

// Delete removes the row under key, if there is one.
func (m Memory) Delete(key string) error {
	delete(m, key)
	return nil
}

// Scan looks at all keys and sorts those that match: it is made to be right, not
// fast.
func (m Memory) Scan(prefix, after string, limit int) ([]projections.KeyRow, error) {
	var keys []string
	for key := range m {
		if strings.HasPrefix(key, prefix) && key > after {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var page []projections.KeyRow
	for _, key := range keys[:min(limit, len(keys))] {
		page = append(page, projections.KeyRow{Key: key, Row: bytes.Clone(m[key])})
	}
	return page, nil
}

// Dump renders all rows, so that two sets can be compared as text.
func (m Memory) Dump() string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(m)) {
		b.WriteString(key + " " + string(m[key]) + "\n")
	}
	return b.String()
}
