package events

// Header names of the envelope: CloudEvents 1.0 in binary mode plus ours
// (design §2, ADR 0002). Payloads carry data only.
const (
	HeaderSpec        = "ce-specversion" // always "1.0"
	HeaderID          = "ce-id"          // of the event, unique
	HeaderType        = "ce-type"        // wire name, see Name
	HeaderSource      = "ce-source"      // incarnation that wrote it
	HeaderTime        = "ce-time"        // writer's wall clock, RFC 3339 UTC, for people
	HeaderVersion     = "schema-version"
	HeaderCommand     = "command-id" // minted by this process, one per attempt chain
	HeaderCausation   = "causation-id"
	HeaderCorrelation = "correlation-id"
	HeaderEpoch       = "epoch"     // of the tenure the write rests on
	HeaderFleetSeq    = "fleet-seq" // outside FLEET: position of the writer's tenure
	HeaderActor       = "actor"     // who asked, on operators' acts
	HeaderReason      = "reason"
)
