// Package placement is the arithmetic that says which node should run which
// seat: fair shares, what to claim, what to give back, what nobody can run.
//
// Every node works it out for itself from the same facts. Seats that share one
// placement form a group; each node counted in shares may run
// ceil(group / counted nodes that match) of it, and room in one group is never
// room in another (P2, P3).
//
// Guarantees, for a node that obeys its Plan:
//
//  1. Claiming and giving back read one number per group, Group.Room (P7). A
//     node gives back only what is above it, so it can never claim again what
//     it just gave back, and nodes that see the same facts do not swing (P9).
//  2. The shares of the nodes that match a group sum to at least its size. A
//     seat no counted node matches is named in Plan.Unplaceable, and only such
//     a seat (P9).
//  3. What is not known concludes nothing: without the company or the live
//     nodes nothing is claimed, nothing is full, nothing is unplaceable.
//  4. The same View gives the same Plan, in every process.
//
// Not guaranteed. Exclusivity: a Plan is built on hints, two nodes may plan to
// claim one seat, and the log decides who gets it. Cover while a node is behind
// or has stuck seats: it holds its share down until that clears (P7, P10).
//
// Concurrency. Sweep and Explain are pure: no clock, no I/O, and they neither
// change nor keep anything of the View. A Claims cursor belongs to one goroutine.
//
//	plan := placement.Sweep(view)
//	claims := plan.Claims()
//	for handle, ok := claims.Next(); ok; handle, ok = claims.Next() {
//		if !claim(handle) {
//			claims.Lost(handle)
//		}
//	}
package placement
