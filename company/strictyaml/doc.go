// Package strictyaml reads YAML (and so JSON) that people write by hand, and
// says everything that is wrong with it at once: where, what, and what to write
// instead.
//
// A document becomes a tree of [Node] cursors. The caller asks a node for what
// it expects (Fields, List, Text, Int, Bool, Duration); a node that is something
// else reports that and answers false, and the caller reads on. What the reader
// accepts is less than YAML: one document, text keys, no tags, no merge keys,
// plain decimal integers.
//
// Guaranteed: no input panics, and size, signs, nesting, alias expansion and
// the number of reported problems all have a limit (the constants below).
//
// Not guaranteed: that a document with a syntax error has all its problems
// reported. Behind the first syntax error nothing can be placed.
//
// Concurrency: a Report and its nodes belong to one goroutine.
package strictyaml

// What one document may ask of its reader.
const (
	maxSigns    = 1 << 19 // brackets, colons, commas…: 4 MiB of an ordinary company
	maxDepth    = 64      // levels of nesting
	maxExpanded = 1 << 20 // values once every alias is replaced by its target
	maxProblems = 100     // reported one by one; the rest is counted
	maxText     = 400     // bytes of one message or fix
)
