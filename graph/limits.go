package graph

import "time"

// What one request, and all of them together, may take.
const (
	maxBody        = 6 << 20 // bytes of a request's body: a whole company document, escaped
	maxTokens      = 5000    // lexical tokens of a GraphQL document
	maxDepth       = 16      // of nested selections
	maxFields      = 5000    // of an operation, fragments written out
	maxCost        = 100_000 // see cost.go
	maxPage        = 500     // items of one page
	maxNodes       = 1000    // nodes of a fleet that are listed at once
	maxExpiryReads = 50      // seats of a list whose expiry is read from the log

	maxText         = 128 // bytes of a mail's type or conversation
	maxWait         = 10 * time.Minute
	maxIdle         = 30 * time.Second // of a stream that an export reads: a replica may be unreadable
	maxReason       = 500              // bytes of an operator's reason
	usualDrain      = 5 * time.Minute
	maxDrain        = 24 * time.Hour
	maxOperations   = 32 // operators' mutations under way at once
	operateTimeout  = 45 * time.Second
	nearestHandles  = 3    // handles offered to somebody who wrote an unknown one
	maxRunning      = 64   // operations that run at once; more queue until their time is up
	maxWaiters      = 1000 // callers that wait for a completion at once
	maxFollowers    = 64   // followers of /events at once
	maxExports      = 2    // exports that are collected or sent at once
	maxSpool        = 8 << 30
	queryTimeout    = 30 * time.Second
	sendTimeout     = 30 * time.Second
	readTimeout     = 30 * time.Second // for a request to arrive with its body
	writeTimeout    = 30 * time.Second // for one piece of an answer to be taken
	headerTimeout   = 10 * time.Second
	idleTimeout     = 2 * time.Minute
	maxHeaderBytes  = 64 << 10
	shutdownTimeout = 5 * time.Second // for requests under way when the node stops
)

// gate bounds how many do something at once.
type gate chan struct{}

func newGate(size int) gate { return make(gate, size) }

// enter says whether there was room; then leave must follow.
func (g gate) enter() bool {
	select {
	case g <- struct{}{}:
		return true
	default:
		return false
	}
}

func (g gate) leave() { <-g }
