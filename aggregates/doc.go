// Package aggregates decides what may happen. Each aggregate is a command
// type, a state, Decide and Evolve: values in, values out.
//
// Guarantees. Decide is pure and never emits what Evolve cannot take; Evolve is
// total, it applies facts and never judges them. A decision says nothing about
// being first: the write shell (commands) appends it with the sequence the
// state was folded up to, and only the broker's answer makes it so.
//
// Not guaranteed. Nothing here knows the time. "Unseen for" arrives inside a
// command, measured by the log clock (design §3).
//
// Concurrency. Everything is a value; slices of a state are never changed in
// place.
package aggregates
