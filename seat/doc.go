// Package seat is the host: it holds a node's presence, decides which seats the
// node takes and gives back, renews what it holds, and says of each turn
// whether it may start and go on.
//
// Guarantees. A seat is held, or it is not: MayStart and Fence answer from the
// last renewal that stands, counted by the holder's clock from before it was
// sent (A1, F2), and read no flag that something else would have to clear in
// time. A teardown that cannot be proven keeps its lease (H6). An answer that
// did not come is neither a refusal nor a success (L8).
//
// Not guaranteed. A pause that no clock of this machine shows goes unnoticed
// here; what it may do is limited by the broker (design §4).
//
// Concurrency. Run owns every goroutine and waits for them. Acquiring,
// releasing and giving back one seat exclude each other by that seat's lock,
// which is held across hooks and appends; the host's own mutex guards the map
// of holdings and is never held while calling out. Order: seat lock,
// then mutex, then the runner's.
package seat
