package main

import (
	"context"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/events"
)

// shellLog is the broker's log as the write shell needs it. The shell reads its
// own clock before it appends, so the instants of the broker's receipts are not
// handed on.
type shellLog struct{ log *broker.Log }

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
