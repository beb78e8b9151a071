// Package robust breaks fleets of real processes and holds what they did
// against what was promised. All of it is in its tests: `make robust` runs
// TestRobust, and the rules by which it judges have tests of their own, which
// show that each rule can fail.
//
// A run has six nodes. Three carry the log, three are its clients, each in a
// network namespace of its own behind one bridge, with a small disk of its own.
// A script of faults is drawn from a seed; mail flows all along. What the seats'
// agents do is told to a file that no node can touch, and that file, the log and
// the answers of the nodes are the evidence.
//
// A seed gives the same script of faults, not the same run: processes and
// networks have timings of their own.
package robust
