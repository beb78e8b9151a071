package broker

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	wmnats "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/components/requestreply"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats.go"

	"github.com/seat-tenure/tenure/events"
)

// busCommand is a command on its way. Fields are added, never changed: nodes
// of two versions speak to each other.
type busCommand struct {
	node string // where it goes

	Name   string             `json:"name"`
	ID     string             `json:"id"`
	For    events.Incarnation `json:"for,omitempty"`
	From   events.Incarnation `json:"from"`
	Actor  string             `json:"actor,omitempty"`
	Reason string             `json:"reason,omitempty"`
	Budget int64              `json:"budget_ms"` // how long its asker waits: clocks of two machines are never compared
	Args   json.RawMessage    `json:"args,omitempty"`
}

// busOutcome is what became of a command. An outcome that this build does not
// know is as good as none.
type busOutcome string

const (
	busDone        busOutcome = "done"
	busRefused     busOutcome = "refused"
	busBusy        busOutcome = "busy"        // nothing was done, now
	busUnavailable busOutcome = "unavailable" // nothing was done, or nothing could be read
	busUnknown     busOutcome = "unknown"
)

type busAnswer struct {
	Outcome busOutcome         `json:"outcome"`
	By      events.Incarnation `json:"by"`
	Code    string             `json:"code,omitempty"`
	Message string             `json:"message,omitempty"`
	Reply   json.RawMessage    `json:"reply,omitempty"`
}

// busSubjects is where the bus passes. Neither a token that starts with '_' nor
// the empty one is a node id, so answers and commands cannot meet.
type busSubjects struct {
	ops   string
	inbox string // of this process alone
}

func newBusSubjects(s events.Subjects) busSubjects {
	ops := s.Prefix() + ".ops."
	// Not under _INBOX: clients of a loopback listener may read that.
	return busSubjects{ops: ops, inbox: ops + "_answer." + strings.ToLower(rand.Text()) + "."}
}

func (s busSubjects) node(id string) string          { return s.ops + id }
func (s busSubjects) answer(operation string) string { return s.inbox + operation }

// commandMarshaler is cqrs' own, but for the name: theirs comes from the Go type.
// There is one kind of message, and busCommand.Name tells commands apart, so
// that a name nobody handles is refused and not passed over.
type commandMarshaler struct{ cqrs.JSONMarshaler }

const commandMessage = "operator-command"

func (commandMarshaler) Name(any) string                         { return commandMessage }
func (commandMarshaler) NameFromMessage(*message.Message) string { return commandMessage }

// What the router's handlers need to know of a message from the broker.
const (
	busReplyTo = "reply_to"
	busSubject = "subject"
	busStatus  = "status"
)

// busCodec turns watermill's messages into the broker's and back.
type busCodec struct {
	subjects busSubjects
	gate     *gate
}

var _ wmnats.MarshalerUnmarshaler = (*busCodec)(nil)

// Marshal gives commands a subject to be answered on. By it the broker also
// tells the asker at once that nobody listens.
func (c *busCodec) Marshal(topic string, msg *message.Message) (*nats.Msg, error) {
	m := nats.NewMsg(topic)
	m.Data = msg.Payload
	if operation := msg.Metadata.Get(requestreply.OperationIDMetadataKey); operation != "" {
		m.Reply = c.subjects.answer(operation)
	}
	return m, nil
}

// Unmarshal lets a message in, unless the bus stops. It takes the reply subject
// away: to that pkg/nats would send JetStream's "+ACK", and wait for an answer.
func (c *busCodec) Unmarshal(m *nats.Msg) (*message.Message, error) {
	if !c.gate.enter() {
		return nil, errBusStopped
	}
	msg := message.NewMessage("", m.Data)
	msg.Metadata.Set(busSubject, m.Subject)
	msg.Metadata.Set(busReplyTo, m.Reply)
	msg.Metadata.Set(busStatus, m.Header.Get("Status"))
	m.Reply = ""
	return msg, nil
}

var errBusStopped = errors.New("the bus is stopped")

// gate counts messages between the client's callback and the router. pkg/nats
// closes a channel that a callback may still be sending on, which ends the
// process; so the channel is closed only when the gate is shut and nothing is
// passing it.
type gate struct {
	mu      sync.Mutex
	closed  bool
	passing sync.WaitGroup
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.passing.Add(1)
	return true
}

func (g *gate) leave() { g.passing.Done() }

// shut lets nothing in any more and waits for what is passing.
func (g *gate) shut() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.passing.Wait()
}
