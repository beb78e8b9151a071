// Package sagas decides how work that takes several nodes and several events
// goes on. A saga has the shape of an aggregate (Decide, Evolve) and one thing
// more: Next, what a node is to do now, given the folded present.
//
// Handoff moves one seat from one incarnation to another:
//
//	requested → warmed → quiesced → flushed → released → (claimed → established) → completed
//	    └─ target ─┘└──────────── source ─────────────┘└───────── target ─────────┘
//
// and from every step to declined or abandoned. The seat is dark from quiesced
// to established only.
//
// Guarantees.
//   - One handoff of a seat is open at a time.
//   - The release of the lease and the saga's own release are one decision, for
//     one atomic batch: a handoff is either released or abandoned, never both.
//   - An event stands before the effect it allows: warmed before the source holds
//     the mailbox, quiesced before it takes anything down. So what an abandonment
//     leaves to do is read off the log: before quiesced the source lifts its
//     hold and goes on; after, it finishes the teardown, by the undead path if
//     need be, and releases plainly. It never resumes.
//   - Every step has a deadline after which anybody may abandon it, so a handoff
//     ends whoever dies.
//   - Effects are for incarnations. A process that boots, replays or rebuilds is
//     named in no handoff of before: all that Next can ask of it is to abandon
//     one that has outlived its deadline.
//
// Not guaranteed. A decision is about facts of the saga alone and about the lease
// that the command brings; who holds a seat is the lease's business, and no step
// of a saga changes it but the release. Next is a function of a fold that may lag:
// an effect that comes late must find, in its command's refusal, that it is.
//
// The runner folds a seat's edges (saga, lease and host events) with
// EvolveHandoff, asks Next on every event and every timer, and runs what it says
// however often it says it: effects are to be idempotent. Nothing here knows the
// time. How long an event has been unseen behind the log's end arrives inside
// commands, measured by the log clock (design §3).
//
// Concurrency. Everything is a value or a pure function; share freely.
package sagas
