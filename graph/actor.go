package graph

import (
	"context"
	"net"
	"net/http"
)

type actorKey struct{}

// withActor keeps who asks: the name of the token that was shown or, where none
// is asked for, the address that the request came from. What a proxy says of
// whom it speaks for is not believed.
func (a *api) withActor(r *http.Request) *http.Request {
	actor, shown := "", false
	if a.deps.Tokens != nil {
		actor, shown = a.deps.Tokens.name(r)
	}
	if !shown {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			host = r.RemoteAddr
		}
		actor = "anonymous@" + host
	}
	return r.WithContext(context.WithValue(r.Context(), actorKey{}, actor))
}

func actorOf(ctx context.Context) string {
	actor, _ := ctx.Value(actorKey{}).(string)
	return actor
}
