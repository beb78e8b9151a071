// Package broker is everything that speaks NATS: the embedded server,
// connections, the streams of a fleet, the log on top of them and the log
// clock (design §2, §3).
//
// # What is guaranteed
//
//   - Append and AppendBatch tell refused, exists, busy, unknown and not sent
//     apart (see package events). Nothing is reported as stored that the
//     broker's leader did not acknowledge, or that was not found again by its
//     command id.
//   - Get, Last, Next and Info are answered by the stream's leader.
//   - Log settles an unknown outcome by writing, never by a read that found
//     nothing.
//   - The in-memory twin answers as the real broker does, fault for fault; one
//     contract suite runs on both.
//
// # What is not
//
//   - A leader that was cut off may answer reads for some seconds (NATS has no
//     leader lease). Only a write that was acknowledged proves anything about now.
//   - LastPerSubject and Subscribe are hints. They decide nothing.
//   - Message.At is a broker's wall clock. Nothing here computes with it (L6).
//
// # Concurrency
//
// All methods of Stream, Store, Log and LogClock may be called from any
// goroutine. Callbacks of Follow run on the caller's goroutine, those of
// Subscribe on one goroutine of their own, in order.
//
//	store, err := broker.Open(ctx, conn, broker.Config{Prefix: "crewlet", Replicas: 1, LeaseTTL: 45 * time.Second})
//	log := broker.NewLog(store)
//	receipt, err := log.Append(ctx, events.StreamFleet, write)
package broker
