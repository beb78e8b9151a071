// Package company is the company document: who works there, on which seats,
// where a seat may be placed and what runs it.
//
//	c, err := company.Parse("company.yaml", doc)
//	var problems company.Problems
//	if errors.As(err, &problems) {
//		// each with its line and column, what is wrong and what to write
//	}
//
// Guaranteed: a document is taken whole or not at all; all its problems are
// reported together; parsing, packing and unpacking are bounded whatever the
// input; the same document gives the same Company and the same digest on every
// node, and an agent id depends on nothing but the company's name and the
// handle (spec G1).
//
// Not guaranteed: that a seat can be placed (placement decides that against the
// nodes that live), or that a runner's program exists on a node.
//
// Concurrency: every function is pure. A Company is a value that nobody changes
// once Parse returned it, so any number of goroutines may read it.
package company

import (
	"time"

	"github.com/seat-tenure/tenure/company/strictyaml"
)

// Limits of a document. What is longer is refused with its size.
const (
	MaxDocument = 4 << 20 // bytes of YAML or JSON
	MaxName     = 128     // bytes of the company's name
	MaxTitle    = 256     // bytes of a role's title
	MaxLabels   = 32      // of one placement
	MaxArgs     = 256     // a runner's program and its arguments
	MaxArg      = 32 << 10
	MaxTimeout  = 24 * time.Hour
)

// DefaultTimeout bounds a turn of an exec runner that names no timeout.
const DefaultTimeout = 10 * time.Minute

// Problem is one thing that is wrong with a company document.
type Problem = strictyaml.Problem

// Problems is everything that is wrong with a company document.
type Problems = strictyaml.Problems
