package robust_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
)

// watch follows FLEET from outside and notes when it first saw each position:
// by then the event was stored. It changes the node when one stops talking.
type watch struct {
	w    *world
	mu   sync.Mutex
	seen map[uint64]int64
	last uint64
}

func (v *watch) run(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		_ = v.follow(ctx, v.w.nodes[i%nodeCount]) // the next node goes on where it ended
		pause(ctx, 300*ms)
	}
}

func (v *watch) follow(ctx context.Context, n *node) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	url := fmt.Sprintf("%s/events?stream=FLEET&follow=true&after=%d", n.url(), v.last)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", bearer)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", n.id, resp.Status)
	}
	lines := make(chan uint64)
	go func() {
		defer close(lines)
		in := bufio.NewScanner(resp.Body)
		in.Buffer(nil, 16<<20)
		for in.Scan() {
			var line struct{ Seq uint64 }
			if json.Unmarshal(in.Bytes(), &line) == nil && line.Seq > 0 {
				select {
				case lines <- line.Seq:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	// A node that is stopped or cut off says nothing and does not hang up. FLEET
	// has a renewal every few seconds, so silence means that.
	for {
		silent, stop := context.WithTimeout(ctx, ttl/2)
		select {
		case seq, ok := <-lines:
			stop()
			if !ok {
				return nil
			}
			v.mu.Lock()
			v.last = max(v.last, seq)
			if _, twice := v.seen[seq]; !twice {
				v.seen[seq] = monotonic()
			}
			v.mu.Unlock()
		case <-silent.Done():
			stop()
			return silent.Err()
		}
	}
}
