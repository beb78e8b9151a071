package events

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// UnknownError says that this build cannot know what an event means: its name
// is new, or its version is newer. A reader stops there (design §2).
type UnknownError struct {
	Stream  Stream
	Seq     uint64
	Name    string
	Version string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%s sequence %d: event %q version %q is not known to this build; run a build at least as new as the one that wrote it",
		e.Stream, e.Seq, e.Name, e.Version)
}

// DecodeError says that an event is damaged, or stands where it cannot.
type DecodeError struct {
	Stream  Stream
	Seq     uint64
	Subject string
	Err     error
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("%s sequence %d (%s) cannot be read: %v", e.Stream, e.Seq, e.Subject, e.Err)
}

func (e *DecodeError) Unwrap() error { return e.Err }

// spec is how one wire name decodes.
type spec struct {
	version int
	family  string
	decode  func(t target, data []byte) (Event, error)
}

// Names lists the wire names that this build reads and writes, sorted.
func Names() []string { return slices.Sorted(maps.Keys(registry)) }

// registry lists every wire name that this build reads and writes.
var registry = makeRegistry()

func makeRegistry() map[string]spec {
	nowhere := func(*StreamMarked, target) {}
	company := func(*CompanyApplied, target) {}
	r := map[string]spec{
		NameSeatEstablished:   {1, famHost, decodeAs(func(e *SeatEstablished, t target) { e.Handle = t.handle })},
		NameSeatPaused:        {1, famHost, decodeAs(func(e *SeatPaused, t target) { e.Handle = t.handle })},
		NameSeatResumed:       {1, famHost, decodeAs(func(e *SeatResumed, t target) { e.Handle = t.handle })},
		NameSeatUnproven:      {1, famHost, decodeAs(func(e *SeatUnproven, t target) { e.Handle = t.handle })},
		NameSeatProven:        {1, famHost, decodeAs(func(e *SeatProven, t target) { e.Handle = t.handle })},
		NameTriggerSkipped:    {1, famHost, decodeAs(func(e *TriggerSkipped, t target) { e.Handle = t.handle })},
		NameMailboxRegistered: {1, famMailbox, decodeAs(func(e *MailboxRegistered, t target) { e.Handle = t.handle })},
		NameMailboxRetiring:   {1, famMailbox, decodeAs(func(e *MailboxRetiring, t target) { e.Handle = t.handle })},
		NameMailboxRetired:    {1, famMailbox, decodeAs(func(e *MailboxRetired, t target) { e.Handle = t.handle })},
		NameCursorRetired:     {1, famCursor, placed[CursorRetired]()},
		NameStreamMarked:      {1, famLog, decodeAs(nowhere)},
		NameCompanyApplied:    {1, famCompany, then(decodeAs(company), openRoster)},
		NameCursorCreated:     {1, famCursor, placed[CursorCreated]()},
		NameCursorOpened:      {1, famCursor, placed[CursorOpened]()},
		NameCursorAttempted:   {1, famCursor, placed[CursorAttempted]()},
		NameCursorSettled:     {1, famCursor, placed[CursorSettled]()},
		NameCursorHeld:        {1, famCursor, placed[CursorHeld]()},
		NameCursorFreed:       {1, famCursor, placed[CursorFreed]()},
		NameMailReplayed:      {1, famParked, placed[MailReplayed]()},
		NameMailReturned:      {1, famParked, placed[MailReturned]()},
		NameMailDropped:       {1, famParked, placed[MailDropped]()},
		NameTurnCompleted:     {1, famWork, then(decodeAs(func(e *TurnCompleted, t target) { e.Handle = t.handle }), underOwnDigest)},
		NameMailParked:        {1, famDead, then(decodeAs(func(e *MailParked, t target) { e.Handle = t.handle }), underOwnKey)},
		NameSeatDeclined:      {1, famLease, onLease(KindSeat, false, decodeAs(func(e *LeaseDeclined, t target) { e.Lease = t.lease }))},
		NameNodeReported:      {1, famLease, onLease(KindNode, false, decodeAs(func(e *NodeReported, t target) { e.Lease = t.lease }))},
		NameHandoffRequested:  {1, famHandoff, placed[HandoffRequested]()},
		NameHandoffWarmed:     {1, famHandoff, placed[HandoffWarmed]()},
		NameHandoffQuiesced:   {1, famHandoff, placed[HandoffQuiesced]()},
		NameHandoffFlushed:    {1, famHandoff, placed[HandoffFlushed]()},
		NameHandoffReleased:   {1, famHandoff, placed[HandoffReleased]()},
		NameHandoffCompleted:  {1, famHandoff, placed[HandoffCompleted]()},
		NameHandoffDeclined:   {1, famHandoff, placed[HandoffDeclined]()},
		NameHandoffAbandoned:  {1, famHandoff, placed[HandoffAbandoned]()},
	}
	maps.Copy(r, retirementRegistry())
	for kind, names := range leaseNames {
		r[names[0]] = spec{1, famLease, onLease(kind, false, decodeAs(func(e *LeaseClaimed, t target) { e.Lease = t.lease }))}
		r[names[1]] = spec{1, famLease, onLease(kind, true, decodeAs(func(e *LeaseRenewed, t target) { e.Lease = t.lease }))}
		r[names[2]] = spec{1, famLease, onLease(kind, false, decodeAs(func(e *LeaseReleased, t target) { e.Lease = t.lease }))}
		r[names[3]] = spec{1, famLease, onLease(kind, false, decodeAs(func(e *LeaseFenced, t target) { e.Lease = t.lease }))}
	}
	return r
}

// retirementRegistry is the part that retirements are made of.
func retirementRegistry() map[string]spec {
	return map[string]spec{
		NameMailboxAbsent:       {1, famRetirement, placed[MailboxAbsent]()},
		NameMailboxReturned:     {1, famRetirement, placed[MailboxReturned]()},
		NameRetirementTicked:    {1, famRetirement, placed[RetirementTicked]()},
		NameRetirementMarked:    {1, famRetirement, placed[RetirementMarked]()},
		NameRetirementResumed:   {1, famRetirement, placed[RetirementResumed]()},
		NameRetirementUnmarked:  {1, famRetirement, placed[RetirementUnmarked]()},
		NameRetirementTakenOver: {1, famRetirement, placed[RetirementTakenOver]()},
		NameRetirementRunsEnded: {1, famRetirement, placed[RetirementRunsEnded]()},
		NameRetirementPurged:    {1, famRetirement, placed[RetirementPurged]()},
		NameRetirementCompleted: {1, famRetirement, placed[RetirementCompleted]()},
	}
}

// onLease binds a lease decoder to its kind and subject.
func onLease(kind LeaseKind, renewal bool, decode func(target, []byte) (Event, error)) func(target, []byte) (Event, error) {
	return func(t target, data []byte) (Event, error) {
		if t.lease.Kind != kind || t.renewal != renewal {
			return nil, fmt.Errorf("a %s event stands under another lease's subject", kind)
		}
		return decode(t, data)
	}
}

// Encode renders e as a message of its stream, without a condition.
func Encode(s Subjects, m Meta, e Event) (Write, error) {
	if err := e.validate(); err != nil {
		return Write{}, fmt.Errorf("encode %s: %w", Name(e), err)
	}
	data, err := payload(e)
	if err != nil {
		return Write{}, fmt.Errorf("encode %s: %w", Name(e), err)
	}
	subject := s.subjectOf(e)
	if _, err := s.parse(subject); err != nil {
		return Write{}, fmt.Errorf("encode %s: %w", Name(e), err)
	}
	return Write{Subject: subject, Header: m.header(e), Data: data}, nil
}

// Decode reads a stored event. It returns *UnknownError for a name or version
// this build does not know, *DecodeError for anything damaged or misplaced.
func Decode(s Subjects, msg Message) (Recorded, error) {
	name, version := msg.Header.Get(HeaderType), msg.Header.Get(HeaderVersion)
	sp, known := registry[name]
	if !known || version != strconv.Itoa(sp.version) {
		return Recorded{}, &UnknownError{msg.Stream, msg.Seq, name, version}
	}
	fail := func(err error) (Recorded, error) {
		return Recorded{}, &DecodeError{msg.Stream, msg.Seq, msg.Subject, err}
	}
	t, err := s.parse(msg.Subject)
	if err != nil {
		return fail(err)
	}
	if t.family != sp.family {
		return fail(fmt.Errorf("a %s stands under another subject", name))
	}
	meta, err := metaOf(msg.Header)
	if err != nil {
		return fail(err)
	}
	if !isObject(msg.Data) {
		return fail(fmt.Errorf("the payload of a %s is one JSON object", name))
	}
	e, err := sp.decode(t, msg.Data)
	if err != nil {
		return fail(err)
	}
	if err := e.validate(); err != nil {
		return fail(err)
	}
	return Recorded{msg.Stream, msg.Seq, msg.Subject, msg.At, meta, e}, nil
}
