package turn

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
)

// markName is the environment variable that every process of a run carries, so
// that whoever comes after a killed node can tell its processes from others'.
const markName = "TENURE_CHILD"

// Mark says whose children the processes of a node are.
type Mark struct {
	// DataDir identifies the data directory: whoever holds its lock is the only
	// one who may call processes marked with it leftovers.
	DataDir string
	// Incarnation is the process that started them.
	Incarnation string
}

// runs numbers the runs of this process: two of them never share a mark.
var runs atomic.Uint64

// forRun is the mark of one run: data directory, incarnation, seat, epoch and a
// number, each closed by a slash so that no mark is another's prefix by chance.
func (m Mark) forRun(seat string, epoch uint64) (string, error) {
	of, err := m.forSeat(seat)
	if err != nil {
		return "", err
	}
	return of + strconv.FormatUint(epoch, 10) + "/" + strconv.FormatUint(runs.Add(1), 10) + "/", nil
}

func (m Mark) forSeat(seat string) (string, error) {
	if err := errors.Join(markPart("data directory id", m.DataDir), markPart("incarnation", m.Incarnation), markPart("seat", seat)); err != nil {
		return "", err
	}
	return m.DataDir + "/" + m.Incarnation + "/" + seat + "/", nil
}

func markPart(what, s string) error {
	if s == "" || strings.ContainsAny(s, "/\x00") {
		return fmt.Errorf("%s %q cannot mark a process: it must be neither empty nor contain '/'", what, s)
	}
	return nil
}
