// Package audit proves from a history alone that the ownership it records was
// legal: no running node, no broker and no clock is asked.
//
// The export. One JSON object a line, each ending in "\n". The first is the
// Header; then come the messages, by stream in the order of the header and
// within a stream by sequence, as AppendMessage writes them. Every line, the
// header included, ends in a key "chain":
//
//	chain(n) = hex of SHA-256( the 32 bytes of chain(n-1), then the line as it
//	           would stand without its chain key and without the line break )
//
// and the header's own chain follows 32 zero bytes. A message has one spelling
// only, so a line that says the same in other bytes is not of the format.
//
// Guarantees. A line removed, added, altered or cut off is found and its place
// named. A step of a handoff that its decider would not have decided is found,
// and so is a release or a decline for a handoff that does not stand in one
// batch with its step. Check and Auditor take a history of any length in memory
// bounded by the seats and their tenures. Everything that breaks a rule is
// counted; the first MaxFindings are listed.
//
// Not guaranteed. The chain is no signature: whoever may rewrite the whole file
// may chain it anew. Keep Report.Chain elsewhere to notice that. Between
// streams only fleet-seq orders, so what depends on when something in another
// stream happened is a note and never a violation. Renewals may be pruned, and
// evidence that rests on a pruned one is noted, not judged. Header and subject
// bytes that are not UTF-8 are exported as U+FFFD.
//
// Concurrency. Reader, Writer, Tally and Auditor belong to one goroutine each.
//
//	report, err := audit.Check(file) // err: not an export, or it cannot be read
//	if err == nil && !report.OK() {
//		report.WriteText(os.Stdout)
//	}
package audit
