package graph

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph/model"
)

// A cursor is the kind of its list and the key of its item, in base64 so that
// nobody takes it apart. It names a place and no snapshot: it stays good when
// the item is gone.
const (
	cursorSeat     = "seat:"
	cursorTenure   = "tenure:"
	cursorSaga     = "saga:"
	cursorMailbox  = "mailbox:"
	cursorRevision = "revision:"
	cursorMail     = "mail:"
	cursorParked   = "parked:"

	maxCursor = 256 // bytes
)

func cursorOf(kind, key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(kind + key))
}

// keyOf reads a cursor back; "" for none.
func keyOf(kind string, cursor *string) (string, error) {
	if cursor == nil {
		return "", nil
	}
	if len(*cursor) > maxCursor {
		return "", badCursor()
	}
	raw, err := base64.RawURLEncoding.DecodeString(*cursor)
	key, ok := strings.CutPrefix(string(raw), kind)
	if err != nil || !ok || key == "" {
		return "", badCursor()
	}
	return key, nil
}

func badCursor() error {
	return model.Badf("after", "this is no cursor of this list; use one that the list gave")
}

// handleAfter is where a list goes on that is by handle.
func handleAfter(kind string, cursor *string) (string, error) {
	handle, err := keyOf(kind, cursor)
	if err == nil && handle != "" && events.ValidHandle(handle) != nil {
		err = badCursor()
	}
	return handle, err
}

// positionBefore is where a list that is newest first goes on; 0 at its
// beginning.
func positionBefore(kind string, cursor *string) (uint64, error) {
	key, err := keyOf(kind, cursor)
	if err != nil || key == "" {
		return 0, err
	}
	before, err := strconv.ParseUint(key, 10, 64)
	if err != nil || before == 0 {
		return 0, badCursor()
	}
	return before, nil
}

// pageSize judges the argument first, which is usual when it is null.
func pageSize(first *int, usual int) (int, error) { return pageUpTo(maxPage, first, usual) }

// pageUpTo is pageSize for a list that gives fewer at once.
func pageUpTo(most int, first *int, usual int) (int, error) {
	if first == nil {
		return usual, nil
	}
	if *first < 1 || *first > most {
		return 0, model.Badf("first", "%d is not between 1 and %d", *first, most)
	}
	return *first, nil
}

// pageInfo says how a page stands in its list.
func pageInfo(cursors []string, more bool, after *string) *model.PageInfo {
	p := &model.PageInfo{HasNextPage: more, HasPreviousPage: after != nil}
	if n := len(cursors); n > 0 {
		p.StartCursor, p.EndCursor = &cursors[0], &cursors[n-1]
	}
	return p
}

// whole is the length of a list that one page holds; nil when it holds a part.
func whole(n int, more bool, after *string) *int {
	if more || after != nil {
		return nil
	}
	return &n
}

// token judges an argument that names a seat or a node.
func token(argument, s string) error {
	if err := events.ValidHandle(s); err != nil {
		return model.Badf(argument, "use 1 to 63 of a-z, 0-9, '_' and '-', starting with a letter or a digit")
	}
	return nil
}
