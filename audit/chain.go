package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
)

// chain is the running hash over the lines of an export, see the package doc.
type chain [sha256.Size]byte

const chainKey = `,"chain":"`

// chainLen is how many bytes the chain adds to a line: key, hash, quote, brace.
const chainLen = len(chainKey) + 2*sha256.Size + len(`"}`) - len(`}`)

// next is the chain after line, which stands without its chain key.
func (c chain) next(line []byte) chain {
	h := sha256.New()
	h.Write(c[:])
	h.Write(line)
	var sum chain
	h.Sum(sum[:0])
	return sum
}

func (c chain) String() string { return hex.EncodeToString(c[:]) }

// attach puts the chain at the end of line, a JSON object.
func (c chain) attach(line []byte) []byte {
	line = append(line[:len(line)-1], chainKey...)
	line = hex.AppendEncode(line, c[:])
	return append(line, `"}`...)
}

// detach takes the chain off the end of line, in place. The key is found by its
// distance from the end: data may contain whatever looks like one.
func detach(line []byte) (rest []byte, c chain, ok bool) {
	at := len(line) - chainLen - 1
	if at < 1 {
		return line, chain{}, false
	}
	tail := line[at:]
	digits, closed := bytes.CutSuffix(tail, []byte(`"}`))
	digits, keyed := bytes.CutPrefix(digits, []byte(chainKey))
	if !closed || !keyed || bytes.ContainsAny(digits, "ABCDEF") {
		return line, chain{}, false
	}
	if n, err := hex.Decode(c[:], digits); err != nil || n != len(c) {
		return line, chain{}, false
	}
	return append(line[:at], '}'), c, true
}
