package graph

import (
	"net/http"
	"time"
)

// Beside serves h next to the API: to those whom the API lets read, so with its
// tokens and not to pages of other sites, for GET and HEAD, and with a panic of
// h answered instead of a broken connection. The whole answer has to be taken
// within one write's time. Mount it on a mux beside New, of the same Deps.
func Beside(deps Deps, h http.Handler) http.Handler {
	a := &api{deps: &deps, code: coder{deps.Log}}
	bounded := func(w http.ResponseWriter, r *http.Request) {
		// A writer that has no deadline is a test's.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
		h.ServeHTTP(w, r)
	}
	return a.guard(a.recovering(a.only(a.authorize(bounded), http.MethodGet, http.MethodHead)))
}
