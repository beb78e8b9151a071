// Package graph is the API of a node: GraphQL over POST /graphql, and /health,
// /ready, /query/fleet and /events beside it.
//
// Guarantees. All fields of one query are answered from one snapshot of the
// read model. What cannot be seen is the state UNKNOWN or an error with the code
// UNAVAILABLE, never empty and never null (M5). Every error carries a code; what
// went wrong inside is logged and not shown. Body, tokens, depth, cost, time,
// waiting callers and open exports are bounded by the constants of limits.go.
// On a loopback address a web page of another origin can neither read nor
// write, and a name that was pointed at the loopback address is refused.
//
// Not guaranteed. A query decides nothing: its answer may be old when it
// arrives. A mutation whose answer was lost may have happened; sendMessage with
// an id of the caller's may be repeated, for the id is worked on once.
//
// Concurrency. The handler serves any number of requests at once. Everything in
// Deps must be safe for that, except a projections.Reader, which is used by one
// goroutine at a time. Serve owns every goroutine it starts.
//
//	handler := graph.New(graph.Deps{Node: "node-0", Views: store, ...})
//	err := graph.Serve(ctx, listener, handler)
package graph
