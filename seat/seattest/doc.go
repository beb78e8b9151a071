// Package seattest runs whole hosts over the in-memory log, in the virtual time
// of a testing/synctest bubble.
//
// Guaranteed: what a node here does is what the product does. The host, the
// write shell, the log with its settling of lost answers, the log clock and the
// read model are the real ones; only the broker behind them and the clocks are
// not. Each node has a connection and clocks of its own, so one of several can
// be cut off, slowed, paused or killed.
//
// Not guaranteed: a goroutine of a node that was "killed" or "paused" still
// runs; what makes it dead is that nothing of it reaches the log, or that its
// clocks stand still. Everything ends, and is waited for, with the test.
//
// Methods may be called from any goroutine of the bubble.
//
//	synctest.Test(t, func(t *testing.T) {
//		f := seattest.New(t, 45*time.Second)
//		f.Seats("dev", "ops")
//		a := f.Start(seattest.Config{ID: "a"})
//		f.Until(func() bool { return len(a.Host.Held()) == 2 })
//	})
package seattest
