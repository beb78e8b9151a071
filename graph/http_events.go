package graph

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/seat-tenure/tenure/audit"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph/model"
)

const mediaLines = "application/x-ndjson"

// exported are the streams of an export for which none were named, in the order
// of the format; all are those that may be named.
var (
	exported    = []events.Stream{events.StreamFleet, events.StreamCursor, events.StreamWork, events.StreamDead}
	everyStream = append(slices.Clone(exported), events.StreamMail, events.StreamMemory)
)

// wanted is what a request to /events asks for.
type wanted struct {
	streams []events.Stream
	after   uint64
	follow  bool
}

// events streams the log in the format of exports (package audit). Without
// parameters it is a whole export. stream, which may be repeated, names the
// streams; after, a position, leaves out what lies at or below it; follow goes
// on with what is stored from now on. The last two are for one stream, FLEET
// when none is named. A follower's header announces no lines, for nobody knows
// how many there will be.
func (a *api) events(w http.ResponseWriter, r *http.Request) {
	want, err := wantedOf(r.URL.Query())
	if err != nil {
		a.fail(w, r, err)
		return
	}
	room, what, most := a.exports, "exports", maxExports
	if want.follow {
		room, what, most = a.followers, "followers", maxFollowers
	}
	if !room.enter() {
		a.fail(w, r, model.Unavailablef("%d %s run already; ask again later", most, what))
		return
	}
	defer room.leave()
	ctx, cancel := untilStopping(r.Context())
	defer cancel()
	if want.follow {
		a.follow(ctx, w, r, want)
		return
	}
	a.export(ctx, w, r, want)
}

func wantedOf(q url.Values) (wanted, error) {
	var want wanted
	for name, values := range q {
		switch {
		case !slices.Contains([]string{"stream", "after", "follow"}, name):
			return want, model.Badf(name, "there is stream, after and follow")
		case name != "stream" && len(values) > 1:
			return want, model.Badf(name, "name it once")
		}
	}
	for _, name := range q["stream"] {
		st := events.Stream(name)
		if !slices.Contains(everyStream, st) {
			return want, model.Badf("stream", "there is FLEET, CURSOR, WORK, DEAD, MAIL and MEMORY")
		}
		want.streams = append(want.streams, st)
	}
	// In the order of the format, each once.
	want.streams = slices.DeleteFunc(slices.Clone(everyStream), func(st events.Stream) bool { return !slices.Contains(want.streams, st) })
	var err error
	if s := q.Get("after"); s != "" {
		if want.after, err = strconv.ParseUint(s, 10, 64); err != nil {
			return want, model.Badf("after", "a position is a decimal number")
		}
	}
	if s := q.Get("follow"); s != "" {
		if want.follow, err = strconv.ParseBool(s); err != nil {
			return want, model.Badf("follow", "write true or false")
		}
	}
	one := want.follow || want.after > 0
	switch {
	case len(want.streams) == 0 && one:
		want.streams = exported[:1]
	case len(want.streams) == 0:
		want.streams = exported
	case len(want.streams) > 1 && one:
		return want, model.Badf("stream", "after and follow are for one stream at a time: each counts its own positions")
	}
	return want, nil
}

// from is where the stream is read from.
func (b Bounds) from(after uint64) (uint64, error) {
	switch {
	case after > b.Last:
		return 0, model.Badf("after", "position %d is beyond the newest, %d", after, b.Last)
	case after > 0 && after+1 < b.First:
		return 0, beforeHistory(b.First)
	}
	return max(after+1, b.First), nil
}

func (b Bounds) createdAt() string { return b.CreatedAt.UTC().Format(time.RFC3339Nano) }

// lines writes an export's lines to a caller.
type lines struct {
	*audit.Writer
	out  *bufio.Writer
	conn *http.ResponseController
}

func newLines(w http.ResponseWriter, h audit.Header) (*lines, error) {
	w.Header().Set("Content-Type", mediaLines)
	conn := http.NewResponseController(w)
	// audit.NewWriter takes a buffered writer of this size as it is, so that
	// flushing it sends what was added.
	out := bufio.NewWriterSize(patient{w, conn}, 64<<10)
	l, err := audit.NewWriter(out, h)
	return &lines{l, out, conn}, err
}

func (l *lines) flush() error {
	if err := l.out.Flush(); err != nil {
		return err
	}
	return l.conn.Flush()
}

// patient gives a caller writeTimeout for each piece, not for the whole.
type patient struct {
	w    http.ResponseWriter
	conn *http.ResponseController
}

func (p patient) Write(b []byte) (int, error) {
	_ = p.conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // a test's writer has none
	return p.w.Write(b)
}

// follow sends what the stream has and what comes, until the caller leaves or
// the node stops.
func (a *api) follow(ctx context.Context, w http.ResponseWriter, r *http.Request, want wanted) {
	st := want.streams[0]
	bounds, err := a.deps.Events.Bounds(ctx, st)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	from, err := bounds.from(want.after)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	header := audit.Header{
		Prefix:  a.deps.Subjects.Prefix(),
		Streams: []audit.StreamHeader{{Stream: st, CreatedAt: bounds.createdAt()}},
	}
	out, err := newLines(w, header)
	if err == nil {
		err = out.flush()
	}
	if err == nil {
		err = a.deps.Events.Follow(ctx, st, from, func(batch []events.Message, _ bool) error {
			for _, m := range batch {
				if err := out.Add(m); err != nil {
					return err
				}
			}
			return out.flush()
		})
	}
	if errors.Is(context.Cause(ctx), errStopping) {
		return // all that was sent is whole
	}
	a.breakOff(ctx, r, err)
}

// breakOff ends an answer that has begun, so that the caller sees that it is
// not whole.
func (a *api) breakOff(ctx context.Context, r *http.Request, err error) {
	if ctx.Err() == nil {
		a.deps.Log.WarnContext(ctx, logBroken, keyErr, fmt.Sprint(err), keyPath, r.URL.Path)
	}
	panic(http.ErrAbortHandler)
}
