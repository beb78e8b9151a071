package graph

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
)

// Serve answers on l until ctx ends. Then it takes no more connections, ends
// whoever waits for a completion or follows events, gives other requests
// shutdownTimeout to be answered, and returns nil when all its goroutines have
// ended. It closes l. An error is why it could not serve.
func Serve(ctx context.Context, l net.Listener, handler http.Handler) error {
	base, cutOff := context.WithCancel(withStopping(context.WithoutCancel(ctx), ctx))
	defer cutOff()
	var requests sync.WaitGroup // Close does not wait for them
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			defer requests.Done()
			handler.ServeHTTP(w, r)
		}),
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout, // net/http lifts it once the body has ended
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		// No WriteTimeout: it would end a wait of minutes. Handlers set a deadline
		// for each piece they write.
	}
	failed := make(chan error, 1) // one send, by the one goroutine
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return errors.Join(err, server.Close())
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if server.Shutdown(grace) != nil {
		cutOff()
		_ = server.Close() // the listener is closed already; this is for connections
	}
	requests.Wait()
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err // it failed just before it was told to stop
	}
	return nil
}
