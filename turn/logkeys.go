package turn

// Names of log events; those of the source text are exact (O1).
const (
	logNoAgent             = "turn_without_an_agent"
	logTurnStarted         = "turn_started"
	logTurnCompleted       = "turn_completed"
	logReplyDropped        = "turn_reply_not_kept"
	logTurnFailed          = "turn_failed"
	logTurnStopped         = "turn_stopped_by_person"
	logTurnFenced          = "turn_fenced"
	logTurnBroke           = "turn_broke_after_acting"
	logPanicked            = "dispatch_panicked"
	logTriggerSkipped      = "turn_trigger_skipped"
	logRerun               = "turn_rerun_after_unfinished_attempt"
	logFenced              = "mailbox_taken_over"
	logAttemptUnrecorded   = "mailbox_cursor_not_written"
	logMailUnread          = "mail_not_read"
	logMailGone            = "mail_gone"
	logMailKept            = "mail_purge_postponed"
	logMailSwapped         = "mail_stream_swapped"
	logMailboxFull         = "mailbox_full"
	logParked              = "mail_parked"
	logParkFailed          = "mail_park_failed"
	logLedgerUnread        = "completion_ledger_unread"
	logCompletionUnwritten = "completion_unwritten"
	logSkipUnrecorded      = "skip_unrecorded"
	logChildrenAlive       = "turn_children_alive"
)

// Keys of log attributes.
const (
	keySeat   = "seat"
	keyEpoch  = "epoch"
	keyReason = "reason"
	keyErr    = "err"
)
