package nodes

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// idle is what a node costs while nothing happens, for each second.
type idle struct {
	sent, received, bytes float64
	cpu                   float64 // seconds of a core
}

// watch counts what passes between the node and the broker over that time.
func (n *node) watch(ctx context.Context, s *server.Server, d time.Duration) (idle, error) {
	before, err := n.counts(s)
	if err != nil {
		return idle{}, err
	}
	if err := pause(ctx, d); err != nil {
		return idle{}, err
	}
	after, err := n.counts(s)
	took := d.Seconds()
	return idle{
		sent: (after.sent - before.sent) / took, received: (after.received - before.received) / took,
		bytes: (after.bytes - before.bytes) / took, cpu: (after.cpu - before.cpu) / took,
	}, err
}

// ticks is how many the kernel counts in a second.
const ticks = 100

// counts adds up all the connections of the broker: they are the node's.
func (n *node) counts(s *server.Server) (c idle, err error) {
	conns, err := s.Connz(nil)
	if err != nil {
		return c, err
	}
	for _, conn := range conns.Conns {
		c.sent += float64(conn.InMsgs) // what the broker took in
		c.received += float64(conn.OutMsgs)
		c.bytes += float64(conn.InBytes + conn.OutBytes)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.cmd.Process.Pid))
	if err != nil {
		return c, err
	}
	_, after, _ := strings.Cut(string(text), ") ") // the name may have blanks
	fields := strings.Fields(after)
	for _, i := range []int{11, 12} { // utime and stime
		t, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return c, err
		}
		c.cpu += t / ticks
	}
	return c, nil
}
