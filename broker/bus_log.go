package broker

import (
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
	fields = fields.Add(watermill.LogFields{"err": err})
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, errBusStopped) {
		w.Debug(msg, fields) // the bus closes its connection before the router its subscriptions
		return
	}
	w.log.Warn("watermill", w.attrs(msg, fields)...)
}

// Info is the router's start and its end: details to us.
func (w watermillLog) Info(msg string, fields watermill.LogFields) { w.Debug(msg, fields) }

func (w watermillLog) Debug(msg string, fields watermill.LogFields) {
	w.log.Debug("watermill", w.attrs(msg, fields)...)
}

func (w watermillLog) Trace(string, watermill.LogFields) {}

func (w watermillLog) With(fields watermill.LogFields) watermill.LoggerAdapter {
	return watermillLog{w.log, w.with.Add(fields)}
}

func (w watermillLog) attrs(msg string, fields watermill.LogFields) []any {
	attrs := []any{"text", msg}
	for key, value := range w.with.Add(fields) {
		attrs = append(attrs, key, value)
	}
	return attrs
}
