// Package duty runs what one node does for the whole fleet (spec Y1), and the
// retirement of mailboxes, which is part of one of them (R1 to R8).
//
// Guaranteed: a duty ticks on a node only while that node holds the lease
// worker:{duty}. It is claimed at a tick, renewed on the heartbeat while it is
// held, and given back when the node stops, after the last tick. A store that
// does not answer skips the tick: unknown ownership is not ownership. A mailbox
// is retired only after the grace of *observed* absence, only under the seat's own
// lease, and only up to its mark: see docs/adr/0017.
//
// Not guaranteed: that two nodes never tick at the same moment. A node that was
// stopped in the middle of a tick finishes it when it goes on, whoever has the
// duty by then. So everything that a tick does is a compare-and-set, or is the
// same whoever does it.
//
// Concurrency: Runner.Run owns one goroutine for each duty and one for the
// heartbeat, and returns when all have ended. Methods of Mailboxes may be called
// from any goroutine; one retirement at a time is worked on by one process.
//
//	runner := duty.NewRunner(cfg, deps, duty.Duty{Name: "maintenance", Every: 15 * time.Minute, Tick: mailboxes.Tick})
//	err := runner.Run(ctx)
package duty
