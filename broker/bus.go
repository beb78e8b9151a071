package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// Limits of the bus.
const (
	// MaxAsk bounds one command on both sides: how long Ask waits, and how long a
	// handler may take.
	MaxAsk = 30 * time.Second
	// MaxBusPayload bounds a command's arguments and its reply.
	MaxBusPayload = 256 << 10

	busInFlight  = 32              // commands that one node handles at once; more are refused as busy
	busWaiting   = 256             // commands that one node waits for the answers of
	busStopGrace = 3 * time.Second // for commands under way when the node stops
	busDrain     = 5 * time.Second // for what was received and what was sent when it stops
	maxCommandID = 128             // characters of a command id
	maxMessageOf = 4 << 10         // bytes of a refusal's message
)

// Request is a command to a node, as its handler sees it.
type Request struct {
	// ID names the command. A repeat with the same id is the same command and
	// gets the same answer, see Bus.
	ID string
	// For is "" or the one incarnation that may act: a command decided on what
	// one process showed must not hit the next one.
	For    events.Incarnation
	From   events.Incarnation // whose Ask it was; set by Ask
	Actor  string             // who asked
	Reason string
	Args   json.RawMessage // JSON, or nothing
}

// CommandHandler carries out one kind of command. It may run beside itself and
// must obey ctx. Its errors travel by kind: *CommandRefusedError,
// events.ErrBusy, ErrUnavailable and ErrUnknown arrive as such, so does the end
// of ctx (as ErrUnknown); any other is a refusal with CodeFailed. A panic is
// logged and answered with CodePanicked.
type CommandHandler func(ctx context.Context, req Request) (json.RawMessage, error)

// Codes of refusals that the bus itself gives. Handlers have codes of their own.
const (
	CodeUnknownCommand   = "UNKNOWN_COMMAND"   // the node has no handler of that name
	CodeOtherIncarnation = "OTHER_INCARNATION" // Request.For names another process
	CodeIDReused         = "ID_REUSED"         // the id was another command's
	CodeUnreadable       = "UNREADABLE"        // the message is no command
	CodeReplyUnusable    = "REPLY_UNUSABLE"    // done, but the reply is too large or no JSON
	CodePanicked         = "PANICKED"          // the handler broke off, perhaps half done
	CodeFailed           = "FAILED"            // the handler's error has no code
)

// CommandRefusedError is a refusal by the process that was asked. Handlers return
// it with Code and Message; Ask adds whose it is.
type CommandRefusedError struct {
	By      events.Incarnation
	Code    string // stable
	Message string // for people
}

func (e *CommandRefusedError) Error() string {
	if e.By == "" {
		return fmt.Sprintf("%s (%s)", e.Message, e.Code)
	}
	return fmt.Sprintf("%s refused: %s (%s)", e.By, e.Message, e.Code)
}

// BusConfig describes one node's end of the bus.
type BusConfig struct {
	Connect ConnectConfig // of a connection of the bus's own: stopping drains it
	Prefix  string        // of the fleet
	Self    events.Incarnation
	Log     *slog.Logger
}

// Bus carries operator commands between nodes (design §5): what needs no order
// and is idempotent. Nothing of the log goes over it.
//
// Guaranteed: one of the processes with the node's id handles a command, at most
// once per Ask; a repeat of a command that was carried out or refused gets the
// same answer from the same process while it is among the last thousand, and
// one that comes while the first is under way waits for that. Not guaranteed:
// that a command arrives. A process that has been restarted knows no answers of
// its predecessor, so handlers must be idempotent by Request.ID themselves.
//
// Everything passes under {prefix}.ops: a broker whose clients have permissions
// of their own must give that to nodes, and to nobody else.
//
// All methods may be called from any goroutine.
type Bus struct {
	cfg      BusConfig
	subjects busSubjects
	log      *slog.Logger

	mu       sync.Mutex
	handlers map[string]CommandHandler
	started  bool

	answers *answers
	running atomic.Pointer[busLine] // nil unless commands can be sent
	ready   chan struct{}           // closed by Run when commands arrive
}

// NewBus returns a bus that does nothing until Run.
func NewBus(cfg BusConfig) (*Bus, error) {
	subjects, err := events.NewSubjects(cfg.Prefix)
	if err := errors.Join(err, cfg.Self.Valid()); err != nil {
		return nil, fmt.Errorf("the bus between nodes: %w", err)
	}
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Bus{
		cfg: cfg, subjects: newBusSubjects(subjects), log: log,
		handlers: map[string]CommandHandler{}, answers: newAnswers(), ready: make(chan struct{}),
	}, nil
}

// Handle names the handler of a command, before Run. A name follows the rule
// of handles; a second handler of one name is a programmer's error.
func (b *Bus) Handle(name string, fn CommandHandler) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := events.ValidHandle(name); err != nil {
		panic(fmt.Sprintf("broker: a command's name: %v", err))
	}
	if b.handlers[name] != nil || b.started {
		panic(fmt.Sprintf("broker: command %q has a handler, or the bus runs", name))
	}
	b.handlers[name] = fn
}

// Running is closed once commands to this node arrive and Ask can be used.
func (b *Bus) Running() <-chan struct{} { return b.ready }

// Run connects, trying until ctx ends, and serves until then. It returns ctx's
// cause after the commands under way are answered, or cut off after a grace
// period, and the connection is drained and closed. It runs once.
func (b *Bus) Run(ctx context.Context) error {
	if !b.start() {
		return errors.New("the bus between nodes runs only once")
	}
	conn, err := Connect(ctx, b.cfg.Connect)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	defer conn.Close()
	// The router outlives ctx: it still carries the answers to commands under way.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	handling, cut := context.WithCancel(life)
	defer cut()
	line, err := b.newLine(handling, conn)
	if err != nil {
		return err
	}
	routed := make(chan error, 1)
	go func() { routed <- line.router.Run(life) }()
	select {
	case err := <-routed:
		return fmt.Errorf("the bus between nodes: %w", err)
	case <-line.router.Running():
	}
	line.known(ctx)
	b.running.Store(line)
	close(b.ready)
	select {
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-conn.closed:
		err = fmt.Errorf("the bus between nodes: %w: its connection was closed", events.ErrUnavailable)
	}
	b.running.Store(nil)
	line.stop(cut)
	end()
	return errors.Join(err, <-routed)
}

func (b *Bus) start() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.started {
		return false
	}
	b.started = true
	return true
}

// handler is safe without the lock's help once the bus runs, but costs nothing
// with it.
func (b *Bus) handler(name string) CommandHandler {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.handlers[name]
}
