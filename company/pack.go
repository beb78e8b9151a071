package company

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// What a TooLargeError can be about.
const (
	whatDocument = "document"
	whatPacked   = "packed document"
)

// TooLargeError says that a document does not fit.
type TooLargeError struct {
	What  string // what is too large: "document" or "packed document"
	Have  int    // bytes
	Limit int    // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the company's %s is %d bytes, and at most %d fit; %s", e.What, e.Have, e.Limit, e.fix())
}

func (e *TooLargeError) fix() string {
	if e.What == whatPacked {
		return "shorten it, or raise the broker's payload limit"
	}
	return "shorten it"
}

// ErrPacked: these bytes are no packed company document.
var ErrPacked = errors.New("no packed company document")

// Pack returns the gzipped form of a document that a revision's event carries,
// and the hex SHA-256 of the document itself. A packed form above limit bytes,
// the room the broker's payload limit leaves, is a *TooLargeError.
func Pack(doc []byte, limit int) (packed []byte, digest string, err error) {
	if len(doc) > MaxDocument {
		return nil, "", &TooLargeError{What: whatDocument, Have: len(doc), Limit: MaxDocument}
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, "", fmt.Errorf("pack the company: %w", err)
	}
	if _, err := w.Write(doc); err != nil {
		return nil, "", fmt.Errorf("pack the company: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, "", fmt.Errorf("pack the company: %w", err)
	}
	if b.Len() > limit {
		return nil, "", &TooLargeError{What: whatPacked, Have: b.Len(), Limit: limit}
	}
	return b.Bytes(), Digest(doc), nil
}

// Digest is the hex SHA-256 of a document as written: what names its content
// whatever packed it.
func Digest(doc []byte) string {
	sum := sha256.Sum256(doc)
	return hex.EncodeToString(sum[:])
}

// Unpack returns the document that Pack packed. It never makes more than
// MaxDocument bytes, however small the input: what would is a *TooLargeError
// (its Have is where reading stopped), and anything else that is no packed
// document is ErrPacked.
func Unpack(packed []byte) ([]byte, error) {
	in := bytes.NewReader(packed)
	r, err := gzip.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPacked, err)
	}
	r.Multistream(false) // one document, not whatever follows it
	doc, err := io.ReadAll(io.LimitReader(r, MaxDocument+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrPacked, err)
	case len(doc) > MaxDocument:
		return nil, &TooLargeError{What: whatDocument, Have: len(doc), Limit: MaxDocument}
	case in.Len() > 0:
		return nil, fmt.Errorf("%w: %d bytes follow it", ErrPacked, in.Len())
	}
	return doc, nil
}
