// Package events defines the facts that a fleet records: their types, wire
// names, versions, envelope and subjects, and the vocabulary of the log that
// keeps them.
//
// Guarantees. Decode is strict on name, version and subject and never skips
// (*UnknownError, *DecodeError say where); it keeps payload fields that it does
// not know (L9), and Encode writes them back. Wire names are constants that no
// Go rename can move. Fixtures in testdata/events decode for ever.
//
// Not guaranteed. Nothing here says that an event was legal to write: that is
// for aggregates to decide and for audit to check.
//
// Concurrency. Everything is a value or a pure function; share freely, change
// no slice or map of an event that was handed to you.
package events
