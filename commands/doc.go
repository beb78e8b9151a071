// Package commands is the write shell: load the newest event of an aggregate,
// decide, append with the sequence that was read, and on a conflict do it over.
//
// Guarantees. One decision is one append, a single event or one atomic batch.
// Epoch, owner and expected sequence come from one read, never from a view. An
// unknown outcome (events.ErrUnknown) leaves as such: it becomes neither a
// success nor a refusal. Refusals are the aggregates' typed errors.
//
// Not guaranteed. A success here admits no turn; Cursors.Attempt alone does,
// and only by a first-hand acknowledgement (design §4).
//
// Concurrency. All methods may be called from any goroutine. One seat's
// cursor and host writes must come one at a time: two in flight check the same
// subject and refuse each other.
package commands
