package badgerstore

// Names of log lines, and their keys.
const (
	logRebuilt     = "projection_store_rebuilt"
	logDamaged     = "projection_store_damaged"
	logNotRebuilt  = "projection_store_not_rebuilt"
	logSwapped     = "projection_stream_swapped"
	logStopped     = "projection_stopped"
	logUnavailable = "projection_source_unavailable"
	logFull        = "projection_store_full"
	logCurrent     = "projection_current"
	logBadger      = "projection_store_badger"

	keyStore    = "store"
	keyStream   = "stream"
	keyPosition = "stream_seq"
	keyReason   = "reason"
	keyErr      = "err"
	keyDetail   = "detail"
)
