// Package generated is what gqlgen makes of schema.graphql: `make generate`
// writes it, nobody edits it. It decides nothing; package graph answers.
package generated
