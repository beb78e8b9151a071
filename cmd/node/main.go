// Command tenure runs a node, and is the way to look at and act on a fleet.
//
// Data goes to stdout and messages to stderr, so that output can be piped; the
// exit codes are in exit.go and never change their meaning. What cannot be seen
// is written as unknown, never left out. All of the program is behind run,
// which uses nothing of the process but the streams it is given, the
// environment and the files that are named.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/seat-tenure/tenure/turn"
)

func main() {
	turn.KeepIfAsked() // this process may be the keeper of a runner's program
	os.Exit(mainCode())
}

func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks; a second one, with the handler gone, ends the
	// process, unless the command at work has asked for signals of its own.
	defer context.AfterFunc(ctx, stop)()
	// Caught, a closed pipe is an error of the write, which ends a follow quietly
	// and leaves a node running when the reader of its log goes away. Ignored, it
	// would be ignored in every child as well.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}
