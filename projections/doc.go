// Package projections folds the log into the rows that queries read.
//
// Guarantees. Apply is pure and total: it knows every event there is, those
// without a row by name. Rows are a function of the log alone, so rows rebuilt
// from nothing equal rows kept up event by event, byte for byte; an event that
// was applied before changes nothing. Broker times are shown and never decide
// who held a seat: that is the order of the log (L6).
//
// Not guaranteed. A lapse is no event: a holder that died is shown until the
// claim that takes its seat over. Nothing here may be used to decide a claim
// (design §3). Rows of an older SchemaVersion cannot be read: rebuild them.
//
// Concurrency. Nothing here is shared. A View is as safe, and as consistent, as
// the Rows underneath; a store gives each reader a snapshot of its own.
package projections
