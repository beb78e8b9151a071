package nodes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seat-tenure/tenure/bench/brokers"
	"github.com/seat-tenure/tenure/bench/measure"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
)

// completions tells when the record of an event's work stood in the log.
type completions struct {
	mu   sync.Mutex
	wait map[string]chan time.Time
}

func (c *completions) expect(id string) chan time.Time {
	done := make(chan time.Time, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wait[id] = done
	return done
}

func (c *completions) take(batch []events.Recorded) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range batch {
		if e, is := r.Event.(events.TurnCompleted); is && c.wait[e.EventID] != nil {
			c.wait[e.EventID] <- now
			delete(c.wait, e.EventID)
		}
	}
}

// mailWithin bounds one piece of mail.
const mailWithin = time.Minute

// mails sends mail to seats that echo: first one at a time, each from its sending
// to the arrival of its completion, then ten times as many from many senders.
func mails(ctx context.Context, f *brokers.Fleet, count, seats int) ([]measure.Figure, error) {
	store, err := f.Store(ctx)
	if err != nil {
		return nil, err
	}
	done := &completions{wait: map[string]chan time.Time{}}
	ctx, stop := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() {
		_ = broker.NewSource(store).Follow(ctx, events.StreamWork, 1, func(batch []events.Recorded, _ bool) error {
			done.take(batch)
			return nil
		})
	})
	defer following.Wait()
	defer stop()
	s := &sender{shell: commands.New(broker.NewLog(store), store.Subjects(), "op:5ea7be4c"), done: done, seats: seats}

	alone, writes := make([]time.Duration, count), make([]time.Duration, count)
	for i := range count {
		if alone[i], writes[i], err = s.send(ctx, "one", i); err != nil {
			return nil, err
		}
	}
	began, errs := time.Now(), make([]error, senders)
	var sending sync.WaitGroup
	for k := range senders {
		sending.Go(func() {
			for i := k; i < 10*count && errs[k] == nil; i += senders {
				_, _, errs[k] = s.send(ctx, "many", i)
			}
		})
	}
	sending.Wait()
	rate := float64(10*count) / time.Since(began).Seconds()
	return []measure.Figure{
		measure.Milliseconds("mail/sent-to-completed-p50", measure.Percentile(alone, 50)),
		measure.Milliseconds("mail/sent-to-completed-p99", measure.Percentile(alone, 99)),
		measure.Milliseconds("mail/one-write-p50", measure.Percentile(writes, 50)),
		{Name: "mail/throughput", Unit: "turns/s", Value: measure.Round(rate)},
	}, errors.Join(errs...)
}

// senders send at once, each waiting for the completion of its mail.
const senders = 64

type sender struct {
	shell *commands.Shell
	done  *completions
	seats int
}

// send returns how long the mail took to be completed, and to be stored.
func (s *sender) send(ctx context.Context, kind string, i int) (completed, stored time.Duration, err error) {
	id := fmt.Sprintf("%s-%06d", kind, i)
	wait := s.done.expect(id)
	began := time.Now()
	_, err = s.shell.Send(ctx, events.Mail{
		Handle: handle(i % s.seats), Mailbox: events.Inbox, ID: id, Type: events.TaskAssigned, Time: began.UTC(), Data: []byte(`{"text":"hello"}`),
	})
	if err != nil {
		return 0, 0, err
	}
	stored = time.Since(began)
	select {
	case at := <-wait:
		return at.Sub(began), stored, nil
	case <-time.After(mailWithin):
		return 0, 0, fmt.Errorf("mail %s to %s was not completed in %v", id, handle(i%s.seats), mailWithin)
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
}
