package badgerstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"
)

// Of a table whose end was cut off or changed, Badger ends the process at open,
// and not by a panic of ours to catch. So the end of every table is looked at
// before: the index with its checksum, from which Badger finds all the rest.
//
// The file ends in: index, length of the index (4 bytes, big-endian), checksum,
// length of the checksum (4 bytes). The checksum is a protocol buffer with one
// field, the CRC-32C of the index.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	lengthSize  = 4
	checksumTag = 2 << 3 // field 2, a varint
	maxChecksum = 1 + binary.MaxVarintLen64
)

// checkTables says which of the database's tables is damaged at its end, if any.
// Only those that the manifest names count: a process that was killed while it
// wrote a table leaves a part of it, which Badger removes.
func checkTables(dir string, opts badger.Options) error {
	f, err := os.Open(filepath.Join(dir, badger.ManifestFilename))
	if errors.Is(err, os.ErrNotExist) {
		return nil // a database to be made; if rows are lost with it the tally tells
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read from
	manifest, _, err := badger.ReplayManifestFile(f, opts.ExternalMagicVersion, opts)
	if err != nil {
		return fmt.Errorf("%w: manifest: %w", errDamaged, err)
	}
	for id := range manifest.Tables {
		path := table.NewFilename(id, dir)
		if err := checkTable(path); err != nil {
			return fmt.Errorf("%w: table %s: %w", errDamaged, filepath.Base(path), err)
		}
	}
	return nil
}

func checkTable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	if err != nil {
		return err
	}
	end := info.Size()
	// before reads the n bytes that stand before end.
	before := func(n int64) ([]byte, error) {
		if n < 0 || n > end {
			return nil, fmt.Errorf("it was cut off: %d bytes are missing", n-end)
		}
		end -= n
		data := make([]byte, n)
		_, err := f.ReadAt(data, end)
		return data, err
	}
	block := func() ([]byte, error) {
		length, err := before(lengthSize)
		if err != nil {
			return nil, err
		}
		return before(int64(binary.BigEndian.Uint32(length)))
	}
	checksum, err := block()
	if err != nil {
		return err
	}
	index, err := block()
	if err != nil {
		return err
	}
	if len(checksum) < 2 || len(checksum) > maxChecksum || checksum[0] != checksumTag {
		return fmt.Errorf("its checksum is no checksum")
	}
	if sum, _ := binary.Uvarint(checksum[1:]); sum != uint64(crc32.Checksum(index, castagnoli)) {
		return fmt.Errorf("its index does not match its checksum")
	}
	return nil
}
