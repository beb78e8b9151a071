package graph

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/99designs/gqlgen/complexity"
	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/lexer"

	"github.com/seat-tenure/tenure/graph/generated"
	"github.com/seat-tenure/tenure/graph/model"
)

// What fields cost beside one point each. A list costs what its items cost,
// times how many were asked for.
const (
	costLogRead  = 10    // a request to the log's leader
	costReply    = 1000  // up to 256 KiB: 100 of them in one answer
	costDocument = 20000 // up to 4 MiB: 5 of them in one answer
	costMail     = 5000  // a write to the log: 20 of them in one request
	// costNodes is how many nodes a fleet is taken to have. Should it have more,
	// its nodes' seats are still no more than the company has.
	costNodes = 25
)

// costs counts list sizes, which gqlgen leaves out.
func costs() generated.ComplexityRoot {
	var c generated.ComplexityRoot
	c.Query.Seats = func(child int, _ *model.SeatFilter, first *int, _ *string) int { return listCost(child, first, 50) }
	c.Query.Tenures = func(child int, _, _ *string, first *int, _ *string) int { return listCost(child, first, 50) }
	c.Node.Seats = func(child int, first *int, _ *string) int { return listCost(child, first, 100) }
	c.Seat.Tenures = func(child int, first *int, _ *string) int { return listCost(child, first, 20) }
	c.Fleet.Nodes = func(child int) int { return times(child, costNodes) }
	c.Fleet.Unplaceable = func(int) int { return costMail }
	c.Seat.ExpiresAt = func(int) int { return costLogRead }
	c.Node.PresenceExpiresAt = func(int) int { return costLogRead }
	c.Completion.Reply = func(int) int { return costReply }
	c.Query.Sagas = func(child int, _ *model.SagaKind, _ *bool, _ *string, first *int, _ *string) int {
		return listCost(child, first, 50)
	}
	// Of each the broker is asked where its mail begins.
	c.Query.Mailboxes = func(child int, _ *model.MailboxFilter, first *int, _ *string) int {
		return listCost(child+costLogRead, first, 50)
	}
	// It counts what every seat has in MAIL, as a list of them does.
	c.Query.Mailbox = func(child int, _ string) int { return child + costMail }
	c.Mutation.RetireMailbox = func(int, string, *bool, string) int { return costMail }
	c.Query.WaitingMail = func(child int, _ string, first *int, _ *string) int {
		return listCost(child+costLogRead, first, 20)
	}
	c.WaitingMail.Data = func(int) int { return costReply }
	c.Query.ParkedMail = func(child int, _ string, _ *bool, first *int, _ *string) int { return listCost(child, first, 50) }
	c.Query.ParkedContent = func(child int, _ string, _ model.Position) int { return child + costReply }
	c.Mutation.ReplayParked = func(int, string, []model.Position, string) int { return costMail }
	c.Mutation.DropParked = func(int, string, []model.Position, string) int { return costMail }
	// It reads the whole company, as unplaceable does.
	c.Query.ExplainPlacement = func(int, string, []string) int { return costMail }
	c.Query.HolderAt = func(child int, _ string, _ model.PointInTime) int { return child + costLogRead }
	c.Query.Company = func(child int, _ *int) int { return child + 1 }
	c.Query.CompanyRevisions = func(child int, first *int, _ *string) int { return listCost(child, first, 20) }
	c.CompanyRevision.Document = func(int) int { return costDocument }
	c.Mutation.ApplyCompany = func(child int, _ string, _ *int, _ *bool, _ string) int { return child + costMail }
	c.Mutation.DrainNode = func(int, string, *time.Duration, string) int { return costMail }
	c.Mutation.CordonNode = func(int, string, string) int { return costMail }
	c.Mutation.UncordonNode = func(int, string, string) int { return costMail }
	c.Mutation.MoveSeat = func(int, string, string, string) int { return costMail }
	c.Mutation.ReleaseSeat = func(int, string, string) int { return costMail }
	c.Mutation.FenceSeat = func(int, string, string) int { return costMail }
	c.Mutation.PauseSeat = func(int, string, *bool, string) int { return costMail }
	c.Mutation.ResumeSeat = func(int, string, string) int { return costMail }
	c.Mutation.SendMessage = func(child int, _, _ string, _ model.JSON, _, _ *string, _ *time.Duration) int {
		return child + costMail
	}
	return c
}

// listCost takes a size out of bounds for the nearest one: the resolver refuses
// it in better words.
func listCost(child int, first *int, usual int) int {
	size := usual
	if first != nil {
		size = min(max(*first, 1), maxPage)
	}
	return times(child, size)
}

func times(child, size int) int {
	if child > math.MaxInt/size-1 {
		return math.MaxInt
	}
	return child*size + 1
}

// limits refuses what would cost too much, before any of it is done.
type limits struct{ schema graphql.ExecutableSchema }

var (
	_ graphql.OperationParameterMutator = (*limits)(nil)
	_ graphql.OperationContextMutator   = (*limits)(nil)
)

// ExtensionName names the extension.
func (*limits) ExtensionName() string { return "Limits" }

// Validate keeps the schema.
func (l *limits) Validate(schema graphql.ExecutableSchema) error {
	l.schema = schema
	return nil
}

// MutateOperationParameters counts tokens before anything is built from them.
func (*limits) MutateOperationParameters(_ context.Context, params *graphql.RawParams) *gqlerror.Error {
	lex := lexer.New(&ast.Source{Input: params.Query})
	for n := 0; ; n++ {
		token, err := lex.ReadToken()
		if err != nil || token.Kind == lexer.EOF {
			return nil // what is wrong with it the parser says better
		}
		if n >= maxTokens {
			return tooComplex("the document has more than %d tokens", maxTokens)
		}
	}
}

// MutateOperationContext measures the operation before it runs.
func (l *limits) MutateOperationContext(ctx context.Context, op *graphql.OperationContext) *gqlerror.Error {
	// Fragments multiply: a few lines of them can stand for more fields than
	// there are atoms. So first the size, counted without writing them out.
	size := measure(op.Operation.SelectionSet, map[*ast.FragmentDefinition]extent{})
	switch {
	case size.depth > maxDepth:
		return tooComplex("the selections are nested %d deep, at most %d are allowed", size.depth, maxDepth)
	case size.fields > maxFields:
		return tooComplex("the operation selects more than %d fields, fragments written out", maxFields)
	}
	if err := readable(op.Operation.SelectionSet, op.Variables); err != nil {
		return coded(&model.Error{Code: model.BadRequest, Message: "an argument cannot be read: " + err.Error()})
	}
	if cost := complexity.Calculate(ctx, l.schema, op.Operation, op.Variables); cost > maxCost {
		return tooComplex("the operation costs %d points, at most %d are allowed; ask for shorter lists or fewer fields", cost, maxCost)
	}
	return nil
}

func tooComplex(format string, args ...any) *gqlerror.Error {
	return coded(&model.Error{Code: model.TooComplex, Message: fmt.Sprintf(format, args...)})
}

// coded is e where gqlgen wants its own kind of error; present finds e again.
func coded(e *model.Error) *gqlerror.Error { return &gqlerror.Error{Err: e, Message: e.Message} }

// extent is how large a selection is with its fragments written out.
type extent struct{ depth, fields int }

// measure counts each fragment once. Validation has refused those that contain
// themselves.
func measure(set ast.SelectionSet, seen map[*ast.FragmentDefinition]extent) extent {
	var sum extent
	add := func(e extent, deeper, more int) {
		sum.depth = max(sum.depth, e.depth+deeper)
		sum.fields = min(sum.fields+e.fields+more, maxFields+1) // saturates
	}
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			add(measure(s.SelectionSet, seen), 1, 1)
		case *ast.InlineFragment:
			add(measure(s.SelectionSet, seen), 0, 0)
		case *ast.FragmentSpread:
			e, known := seen[s.Definition]
			if !known {
				e = measure(s.Definition.SelectionSet, seen)
				seen[s.Definition] = e
			}
			add(e, 0, 0)
		}
	}
	return sum
}

// readable tries every literal argument: the library panics on one that does
// not fit, such as an integer of twenty digits.
func readable(set ast.SelectionSet, vars map[string]any) error {
	for _, selection := range set {
		var below ast.SelectionSet
		switch s := selection.(type) {
		case *ast.Field:
			for _, arg := range s.Arguments {
				if _, err := arg.Value.Value(vars); err != nil {
					return fmt.Errorf("%s: %w", arg.Name, err)
				}
			}
			below = s.SelectionSet
		case *ast.InlineFragment:
			below = s.SelectionSet
		case *ast.FragmentSpread:
			below = s.Definition.SelectionSet
		}
		if err := readable(below, vars); err != nil {
			return err
		}
	}
	return nil
}
