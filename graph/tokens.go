package graph

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"github.com/seat-tenure/tenure/events"
)

// minToken is the least length of a token, in bytes: what a random one of 96
// bits takes in base64.
const minToken = 16

// Tokens are the bearer tokens that a node takes. It keeps their digests, which
// also makes all comparisons equally long.
type Tokens struct {
	digests [][sha256.Size]byte
	names   []string // of each
}

// NewTokens takes tokens as TOKEN or NAME:TOKEN; the name is what the log says
// of whoever shows it, else "token-" and the beginning of its SHA-256. It refuses
// a list without tokens, any that could be guessed, and a token or name twice.
func NewTokens(tokens ...string) (*Tokens, error) {
	if len(tokens) == 0 {
		return nil, fmt.Errorf("no token: name at least one, or ask for none and listen on loopback")
	}
	t := &Tokens{}
	seen := map[string]bool{}
	for i, token := range tokens {
		name, secret, named := strings.Cut(token, ":")
		if !named {
			name, secret = "", token
		}
		if named && events.ValidHandle(name) != nil {
			return nil, fmt.Errorf("token %d: a name has 1 to 63 of a-z, 0-9, '_' and '-', starting with a letter or a digit", i+1)
		}
		if len(secret) < minToken || strings.ContainsAny(secret, " \t\r\n") {
			return nil, fmt.Errorf("token %d: use at least %d bytes without spaces, such as `openssl rand -base64 24` gives", i+1, minToken)
		}
		digest := sha256.Sum256([]byte(secret))
		short := "token-" + hex.EncodeToString(digest[:4])
		if !named {
			name = short
		}
		if seen[name] || seen[string(digest[:])] {
			return nil, fmt.Errorf("token %d: its name or the token itself stands there twice", i+1)
		}
		seen[name], seen[string(digest[:])] = true, true
		t.digests, t.names = append(t.digests, digest), append(t.names, name)
	}
	return t, nil
}

// admits says whether the request carries one of the tokens.
func (t *Tokens) admits(r *http.Request) bool {
	_, known := t.name(r)
	return known
}

// name is the name of the token that the request carries, if it is known. The
// time it takes does not depend on which, or on how much of it is right.
func (t *Tokens) name(r *http.Request) (name string, known bool) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	digest := sha256.Sum256([]byte(strings.TrimSpace(token)))
	for i := range t.digests {
		if subtle.ConstantTimeCompare(digest[:], t.digests[i][:]) == 1 {
			name, known = t.names[i], true
		}
	}
	return name, known
}
