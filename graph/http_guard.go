package graph

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/seat-tenure/tenure/graph/model"
)

// guard keeps web pages of others away from a node that listens on loopback,
// where a browser of the same machine can reach it.
func (a *api) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch {
		case onLoopback(r) && !loopbackName(r.Host):
			// Somebody pointed a name of theirs at 127.0.0.1, so that a page of
			// theirs is of the same origin as this node.
			a.refuse(w, http.StatusForbidden, &model.Error{
				Code:    model.Forbidden,
				Message: "this node listens on loopback and is called localhost, 127.0.0.1 or [::1]; a proxy in front of it must send one of these as Host",
			})
		case !sameOrigin(r):
			a.refuse(w, http.StatusForbidden, &model.Error{
				Code: model.Forbidden, Message: "the request comes from a web page of another origin",
			})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// onLoopback says whether the connection came in on a loopback address.
func onLoopback(r *http.Request) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return false
	}
	ap, err := netip.ParseAddrPort(local.String())
	return err == nil && ap.Addr().Unmap().IsLoopback()
}

func loopbackName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.Unmap().IsLoopback()
}

// sameOrigin is false for what a browser sends on behalf of another site's
// page, reading too: the answer would be kept from the page, but not the work
// from this node. What is no browser sends neither header.
func sameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return true
	case "":
		origin := r.Header.Get("Origin")
		if origin == "" {
			return true
		}
		u, err := url.Parse(origin)
		return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
	}
	return false
}

// authorize asks for a token where there are any.
func (a *api) authorize(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !a.admits(r) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="tenure"`)
			a.refuse(w, http.StatusUnauthorized, &model.Error{
				Code: model.Unauthenticated, Message: "send one of this node's tokens as Authorization: Bearer",
			})
			return
		}
		next(w, a.withActor(r))
	}
}

func (a *api) admits(r *http.Request) bool {
	return a.deps.Tokens == nil || a.deps.Tokens.admits(r)
}
