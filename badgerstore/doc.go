// Package badgerstore keeps the rows of package projections in Badger, follows
// the log into them, and serves reads.
//
// Guarantees. Rows and their stream's checkpoint commit in one transaction, so
// a kill at any moment loses no event and repeats none. Every row carries a
// seal of its key and content, and the store a tally of all its seals: a store
// that was damaged, cut short, mixed from two ages or written by another version
// or for another fleet is found at open or at the read, wiped, and rebuilt from
// the log, with one line in the log (projection_store_rebuilt). A read answers a
// right row or *projections.NotServedError, never a wrong row, and never "none"
// because a copy is incomplete.
//
// A stream that was recreated, restored or swapped under its checkpoint is an
// alarm (projection_stream_swapped): its copy stops and goes out of service, and
// nothing is rebuilt by itself, since it may be the log that is wrong. When the
// log is what it should be, stop the node and remove the store's directory. An
// event that this build cannot decode stops its copy in the same way; nothing
// is skipped. Both are tried again now and then, and serve again once sound.
//
// Not guaranteed. Writes are not synced to disk: after a power cut the store may
// be older, and reads on from its checkpoint. Badger maps its files into memory,
// so a disk that fills up would end the process: writing stops while less than
// Options.MinFree is left, and goes on when there is room. Badger ends the
// process on some damage; two starts in a row that end so make the third wipe
// the store.
//
// Files that change under an open store are not watched: a row that is read is
// checked, but a table that is damaged then may hide rows from a list until the
// next start, which reads every row.
//
// Concurrency. One process at a time has a directory, by a lock on it. One
// writer at a time has a store: Project refuses a second follower of a stream,
// and followers of different streams take turns. Everything may be called from
// any goroutine; Close last, when every Project has returned.
package badgerstore
