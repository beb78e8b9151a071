package seattest

import (
	"context"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
)

// Log is the broker's log as the write shell needs it.
func Log(l *broker.Log) commands.Log { return shellLog{l} }

type shellLog struct{ log *broker.Log }

var _ commands.Log = shellLog{}

func (l shellLog) Append(ctx context.Context, st events.Stream, w events.Write) (events.Receipt, error) {
	r, err := l.log.Append(ctx, st, w)
	return events.Receipt{Seq: r.Seq, FirstHand: r.FirstHand}, err
}

func (l shellLog) AppendBatch(ctx context.Context, st events.Stream, ws []events.Write) (events.Receipt, error) {
	r, err := l.log.AppendBatch(ctx, st, ws)
	return events.Receipt{Seq: r.Seq, FirstHand: r.FirstHand}, err
}

func (l shellLog) AppendEach(ctx context.Context, st events.Stream, ws []events.Write) []events.Result {
	results := make([]events.Result, len(ws))
	for i, r := range l.log.AppendEach(ctx, st, ws) {
		results[i] = events.Result{Seq: r.Seq, Err: r.Err}
	}
	return results
}

func (l shellLog) Last(ctx context.Context, st events.Stream, subject string) (events.Message, error) {
	return l.log.Store().Stream(st).Last(ctx, subject)
}

// NewLog returns a log over that store, by the bubble's clock.
func NewLog(store broker.Store) commands.Log { return Log(broker.NewLog(store, clock.FromTime)) }
