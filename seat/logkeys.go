package seat

// Names of log events; those of the source text are exact (O1).
const (
	logSweep            = "seat_sweep"
	logClaimed          = "seat_claimed"
	logAttached         = "seat_attached"
	logDetached         = "seat_detached"
	logUnplaceable      = "seats_unplaceable"
	logClaimsWithheld   = "seat_claims_withheld"
	logAdmissionStale   = "seat_admission_stale"
	logAdmissionBack    = "seat_admission_restored"
	logUnproven         = "seat_release_unproven"
	logRecovered        = "seat_release_recovered"
	logStillUnproven    = "seat_still_unproven"
	logRoleGone         = "seat_released_role_gone"
	logNodeIDInUse      = "node_id_in_use"
	logPresence         = "node_presence_claimed"
	logPresenceLost     = "node_presence_lost"
	logAcquireFailed    = "seat_acquire_failed"
	logGaveBack         = "seat_given_back"
	logReportFailed     = "seat_report_failed"
	logHandoffRequested = "seat_handoff_requested"
	logHandoffRefused   = "seat_handoff_refused"
	logHandoffStep      = "seat_handoff_step_refused"
	logHandoffAbandoned = "seat_handoff_abandoned"
	logLeaveCut         = "node_left_with_seats"
	logReleaseUnknown   = "seat_release_not_answered"
	logRenewUnknown     = "seat_renew_not_answered"
	logSweepFailed      = "seat_sweep_failed"
	logOlder            = "seat_claims_blocked_by_older_protocol"
)

// Keys of log attributes.
const (
	keyNode   = "node"
	keySeat   = "seat"
	keyEpoch  = "epoch"
	keyOwner  = "owner"
	keySaga   = "saga"
	keyReason = "reason"
	keyErr    = "err"
)
