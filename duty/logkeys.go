package duty

// Names of log events; those of the source text are exact (O1).
const (
	logReleased        = "duty_released"
	logClaimed         = "duty_claimed"
	logLost            = "duty_lost"
	logNotClaimed      = "duty_claim_not_answered"
	logNotRenewed      = "duty_renew_not_answered"
	logNotReleased     = "duty_release_not_answered"
	logTickFailed      = "duty_tick_failed"
	logAbsent          = "seat_mailbox_absent"
	logReturned        = "seat_mailbox_returned"
	logRetired         = "seat_mailbox_retired"
	logHeld            = "seat_mailbox_retirement_held"
	logResumed         = "seat_mailbox_retirement_resumed"
	logDiscovered      = "seat_mailbox_discovered"
	logUnregistered    = "seat_mailbox_unregistered"
	logGraceDiffers    = "seat_mailbox_grace_differs"
	logNotJudged       = "seat_mailboxes_not_judged"
	logNotDiscovered   = "seat_mailboxes_not_discovered"
	logRetirementEnded = "seat_mailbox_retirement_left"
	logRenewalsPruned  = "lease_renewals_pruned"
)

// Keys of log attributes.
const (
	keyNode   = "node"
	keySeat   = "seat"
	keyEpoch  = "epoch"
	keyOwner  = "owner"
	keySaga   = "saga"
	keyDuty   = "duty"
	keyReason = "reason"
	keyErr    = "err"
)
