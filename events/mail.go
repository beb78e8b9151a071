package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Mail is one message to a seat. It is no fact of ours but somebody's words:
// its type may be any, and data is whatever JSON the sender chose.
type Mail struct {
	Handle       string
	Mailbox      Mailbox
	ID           string // the event id: idempotency and the completion ledger key on it (K2)
	Type         string
	Time         time.Time
	Conversation string
	Source       string // who sent it
	Data         json.RawMessage
}

// Types of mail that run a turn and are recorded in the completion ledger. The
// set is closed (K4): mail of any other type is logged, settled, never recorded.
const (
	TaskAssigned         = "task_assigned"
	ExternalNotification = "external_notification"
	A2ARequest           = "a2a_request"
	A2AMessage           = "a2a_message"
)

// Ledgered says whether mail of that type runs a turn and is recorded (K4).
func Ledgered(mailType string) bool {
	switch mailType {
	case TaskAssigned, ExternalNotification, A2ARequest, A2AMessage:
		return true
	}
	return false
}

// Headers of mail beside the envelope's own.
const (
	HeaderConversation = "conversation"
	// HeaderReplayOf is the position in DEAD that replayed mail comes from.
	HeaderReplayOf = "replay-of"
	// HeaderMsgID is the broker's dedupe id; on mail only (design §2).
	HeaderMsgID = "Nats-Msg-Id"
)

// Limits of one message, in bytes. They hold for every sender: what a client puts
// into the stream over them is set aside when it is read.
const (
	// MaxMailData is the most that mail may say: it must fit a program's line
	// beside its envelope, and a record in DEAD, where it is a third longer.
	MaxMailData = 640 << 10
	// MaxMailID bounds an event id that a sender chose.
	MaxMailID = 256
	// MaxMailText bounds a type and a conversation.
	MaxMailText = 256
)

// bounded says which part of m is over its limit, or nil.
func (m Mail) bounded() error {
	var errs []error
	for _, part := range []struct {
		name       string
		have, most int
	}{
		{"id", len(m.ID), MaxMailID}, {"type", len(m.Type), MaxMailText},
		{"conversation", len(m.Conversation), MaxMailText}, {"data", len(m.Data), MaxMailData},
	} {
		if part.have > part.most {
			errs = append(errs, fmt.Errorf("%s: %d bytes, and %d are the most", part.name, part.have, part.most))
		}
	}
	return errors.Join(errs...)
}

// EncodeMail renders m for its subject. sendAttempt makes the broker collapse
// repeats of one attempt to send, and nothing else.
func EncodeMail(s Subjects, m Mail, sendAttempt string) (Write, error) {
	err := errors.Join(ValidHandle(m.Handle), present("id", m.ID), present("type", m.Type),
		line("id", m.ID), line("type", m.Type), line("source", m.Source),
		line("conversation", m.Conversation), line("send attempt", sendAttempt))
	if err == nil && !slices.Contains(Mailboxes[:], m.Mailbox) {
		err = fmt.Errorf("%q is no mailbox of a seat", m.Mailbox)
	}
	if err == nil {
		err = m.bounded()
	}
	if err == nil && !json.Valid(m.Data) {
		err = errors.New("data is not JSON")
	}
	if err != nil {
		return Write{}, fmt.Errorf("mail to %s: %w", m.Handle, err)
	}
	h := Header{}
	h.Set(HeaderSpec, "1.0")
	h.Set(HeaderID, m.ID)
	h.Set(HeaderType, m.Type)
	h.Set(HeaderTime, m.Time.UTC().Format(time.RFC3339Nano))
	h.Set(HeaderMsgID, MailMsgID(m.Handle, m.Mailbox, m.ID, sendAttempt))
	if m.Source != "" {
		h.Set(HeaderSource, m.Source)
	}
	if m.Conversation != "" {
		h.Set(HeaderConversation, m.Conversation)
	}
	return Write{Subject: s.Mail(m.Handle, m.Mailbox), Header: h, Data: m.Data}, nil
}

// MailMsgID is the broker's dedupe id of one attempt to send mail. The seat is part
// of it, since the broker looks at the whole stream (Schedule7).
func MailMsgID(handle string, box Mailbox, id, sendAttempt string) string {
	return strings.Join([]string{handle, string(box), id, sendAttempt}, ".")
}

// line says what a broker's header would change in s, or nil: it trims spaces
// at the ends and has no line breaks. A changed id would be another event's.
func line(field, s string) error {
	if strings.ContainsAny(s, "\r\n") || strings.TrimSpace(s) != s {
		return fmt.Errorf("%s: no line breaks, and no spaces at its ends", field)
	}
	return nil
}

// DecodeMail reads mail as a seat got it. An error means that no turn can ever
// be run on it: it is to be parked, not tried again.
func DecodeMail(s Subjects, msg Message) (Mail, error) {
	rest, ok := strings.CutPrefix(msg.Subject, s.prefix+".agent.")
	handle, box, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 {
		return Mail{}, fmt.Errorf("subject %q is no mailbox", msg.Subject)
	}
	m := Mail{
		Handle: handle, Mailbox: Mailbox(box), ID: msg.Header.Get(HeaderID), Type: msg.Header.Get(HeaderType),
		Conversation: msg.Header.Get(HeaderConversation), Source: msg.Header.Get(HeaderSource), Data: msg.Data,
	}
	if err := errors.Join(present("header "+HeaderID, m.ID), present("header "+HeaderType, m.Type)); err != nil {
		return Mail{}, err
	}
	if err := m.bounded(); err != nil {
		return Mail{}, err
	}
	if !json.Valid(m.Data) {
		return Mail{}, errors.New("the payload is not JSON")
	}
	if t, err := time.Parse(time.RFC3339Nano, msg.Header.Get(HeaderTime)); err == nil {
		m.Time = t
	} else {
		m.Time = msg.At // senders on plain NATS may leave it out
	}
	return m, nil
}
