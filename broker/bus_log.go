package broker

import (
	"context"
	"errors"
	"log/slog"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/nats-io/nats.go"
)

// watermillLog hands watermill's log to slog, without what is no news to us.
type watermillLog struct {
	log  *slog.Logger
	with watermill.LogFields
}

var _ watermill.LoggerAdapter = watermillLog{}

func (w watermillLog) Error(msg string, err error, fields watermill.LogFields) {
	level := slog.LevelWarn
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, errBusStopped) {
		level = slog.LevelDebug // the bus closes its connection before the router its subscriptions
	}
	w.say(level, msg, fields.Add(watermill.LogFields{"err": err}))
}

// The router's notices are its start and its end: details to us.

func (w watermillLog) Info(msg string, fields watermill.LogFields) {
	w.say(slog.LevelDebug, msg, fields)
}

func (w watermillLog) Debug(msg string, fields watermill.LogFields) {
	w.say(slog.LevelDebug, msg, fields)
}

func (w watermillLog) Trace(string, watermill.LogFields) {}

func (w watermillLog) With(fields watermill.LogFields) watermill.LoggerAdapter {
	return watermillLog{w.log, w.with.Add(fields)}
}

func (w watermillLog) say(level slog.Level, msg string, fields watermill.LogFields) {
	ctx := context.Background() // the adapter's methods have none
	if !w.log.Enabled(ctx, level) {
		return
	}
	attrs := []any{"text", msg}
	for key, value := range w.with.Add(fields) {
		attrs = append(attrs, key, value)
	}
	w.log.Log(ctx, level, "watermill", attrs...)
}
