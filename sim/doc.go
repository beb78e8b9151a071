// Package sim breaks whole fleets on purpose and judges what they did.
//
// A fleet here is the product's own code: hosts, turns, the write shell, the log
// with its settling of lost answers, log clocks, sagas and read models, wired as
// the program wires them, over the in-memory broker and inside one
// testing/synctest bubble, so that minutes of its life take a moment. A Script
// says what befalls it, and when: nodes are killed, stopped and cut off, answers
// are lost, writes land late, clocks jump, nodes join and leave, operators and
// companies want things, hooks and agents fail. Mail is sent all along. A Judge
// hears of everything that was done, from witnesses that no node can reach, and
// says what should not have been.
//
// Guaranteed: a script is text and a function of its seed, so that what failed
// can be kept (testdata/stories/sim-*.story) and made smaller. What the Judge
// says rests on the broker's log and on the bubble's time alone, never on what a
// node believes.
//
// Not guaranteed: that a seed plays out the same twice. The script is the same;
// which of two goroutines of one virtual moment goes first is the scheduler's,
// and nodes draw jitter of their own. A seed that failed is played again a few
// times before it is called gone. A stopped node's timers go on in the bubble,
// and fire at once when it wakes; the slow drift of clocks is not simulated.
//
// Script, Draw and Minimise are pure. A Judge may be told things from any
// goroutine.
package sim
