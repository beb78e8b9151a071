// Package model is the API's types: those of schema.graphql that carry more
// than their fields, the scalars, and the one error that callers are shown.
// The rest, in models.gen.go, is generated.
//
// Guaranteed: a scalar that cannot be read is an *Error with BadRequest, and a
// number of 64 bits never passes through a float.
//
// Concurrency: everything is a value or a pure function.
package model
