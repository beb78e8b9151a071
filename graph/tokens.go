package graph

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
)

// minToken is the least length of a token, in bytes: what a random one of 96
// bits takes in base64.
const minToken = 16

// Tokens are the bearer tokens that a node takes. It keeps their digests, which
// also makes all comparisons equally long.
type Tokens struct{ digests [][sha256.Size]byte }

// NewTokens refuses a list without tokens and any that could be guessed.
func NewTokens(tokens ...string) (*Tokens, error) {
	if len(tokens) == 0 {
		return nil, fmt.Errorf("no token: name at least one, or ask for none and listen on loopback")
	}
	t := &Tokens{}
	for i, token := range tokens {
		if len(token) < minToken || strings.ContainsAny(token, " \t\r\n") {
			return nil, fmt.Errorf("token %d: use at least %d bytes without spaces, such as `openssl rand -base64 24` gives", i+1, minToken)
		}
		t.digests = append(t.digests, sha256.Sum256([]byte(token)))
	}
	return t, nil
}

// admits says whether the request carries one of the tokens. The time it takes
// does not depend on which, or on how much of it is right.
func (t *Tokens) admits(r *http.Request) bool {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	digest := sha256.Sum256([]byte(strings.TrimSpace(token)))
	found := 0
	for i := range t.digests {
		found |= subtle.ConstantTimeCompare(digest[:], t.digests[i][:])
	}
	return found == 1
}
