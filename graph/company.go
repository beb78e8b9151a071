package graph

import (
	"context"
	"errors"
	"math"
	"strconv"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/company"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph/model"
	"github.com/seat-tenure/tenure/projections"
)

// Applied is what an apply did, or would do.
type Applied struct {
	Revision  uint64 // in force afterwards; 0: none was made
	Before    uint64 // what Changes compares with, 0 for none
	Unchanged bool   // the document is in force already
	Changes   company.Changes
	Problems  company.Problems // unless empty, nothing was done
}

// refusedStale is why a document is refused that was written against another
// revision, in extensions.refusal.
const refusedStale = "stale_revision"

// ApplyCompany makes a document the company's newest revision.
func (m mutationResolver) ApplyCompany(ctx context.Context, document string, expected *int, dryRun *bool, reason string) (*model.ApplyResult, error) {
	if err := line("reason", reason, maxReason); err != nil {
		return nil, err
	}
	var over *uint64
	if expected != nil {
		if *expected < 0 {
			return nil, model.Badf("expectedRevision", "%d is below 0; write 0 for the first revision of all", *expected)
		}
		n := uint64(*expected)
		over = &n
	}
	if !m.operators.enter() {
		return nil, model.Unavailablef("%d operations are under way already; ask again later", maxOperations)
	}
	defer m.operators.leave()
	ctx, cancel := context.WithTimeout(ctx, operateTimeout)
	defer cancel()
	done, err := m.deps.Company.Apply(ctx, Act{Actor: actorOf(ctx), Reason: reason}, document, over, dryRun != nil && *dryRun)
	var stale *aggregates.StaleRevisionError
	nothingDone := errors.Is(err, events.ErrUnavailable) || errors.Is(err, events.ErrBusy)
	switch {
	case errors.As(err, &stale):
		return nil, &model.Error{
			Code: model.Refused, Message: stale.Error() + "; compare with it, and apply again over it",
			More: map[string]any{"refusal": refusedStale, "revision": stale.Current},
		}
	case errors.Is(err, events.ErrUnknown), err != nil && ctx.Err() != nil && !nothingDone:
		return nil, &model.Error{
			Code:    model.Unavailable,
			Message: "whether the document was applied is not known; apply it again: where it is in force already, nothing changes",
			More:    map[string]any{"outcome": "unknown"},
		}
	case err != nil:
		return nil, err
	}
	return applyResult(done), nil
}

func applyResult(done Applied) *model.ApplyResult {
	c := done.Changes
	out := &model.ApplyResult{
		Unchanged: done.Unchanged, Renamed: c.Renamed,
		Added: orEmpty(c.Added), Removed: orEmpty(c.Removed), Moved: orEmpty(c.Moved), Changed: orEmpty(c.Changed),
		Problems: []*model.Problem{},
	}
	if done.Revision > 0 {
		out.Revision = number(done.Revision)
	}
	if done.Before > 0 {
		out.Before = number(done.Before)
	}
	for _, p := range done.Problems {
		shown := &model.Problem{Path: p.Path, Message: p.Message, Fix: text(p.Fix)}
		if p.Line > 0 {
			shown.Line, shown.Column = &p.Line, &p.Column
		}
		out.Problems = append(out.Problems, shown)
	}
	return out
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// number is n as GraphQL's Int, which has 32 bits.
func number(n uint64) *int {
	i := int(min(n, math.MaxInt32))
	return &i
}

// Company answers one revision.
func (q queryResolver) Company(ctx context.Context, revision *int) (*model.CompanyRevision, error) {
	if revision != nil && *revision < 1 {
		return nil, model.Badf("revision", "%d is no revision; the first one is 1", *revision)
	}
	var c projections.Company
	var found bool
	err := readingOf(ctx).read(ctx, func(reader projections.Reader) (err error) {
		if revision == nil {
			c, found, err = reader.Company()
		} else {
			c, found, err = reader.CompanyRevision(uint64(*revision))
		}
		return err
	})
	if err != nil || !found {
		return nil, err
	}
	return revisionOf(c), nil
}

// CompanyRevisions lists revisions, newest first.
func (q queryResolver) CompanyRevisions(ctx context.Context, first *int, after *string) (*model.CompanyRevisionConnection, error) {
	size, err := pageSize(first, 20)
	if err != nil {
		return nil, err
	}
	before, err := positionBefore(cursorRevision, after)
	if err != nil {
		return nil, err
	}
	r := readingOf(ctx)
	var page projections.Page[projections.Company]
	err = r.read(ctx, func(reader projections.Reader) (err error) {
		page, err = reader.CompanyRevisions(before, size)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := &model.CompanyRevisionConnection{AsOf: r.asOf, Edges: []*model.CompanyRevisionEdge{}}
	var cursors []string
	for _, c := range page.Items {
		cursors = append(cursors, cursorOf(cursorRevision, strconv.FormatUint(c.Revision, 10)))
		out.Edges = append(out.Edges, &model.CompanyRevisionEdge{Cursor: cursors[len(cursors)-1], Node: revisionOf(c)})
	}
	out.PageInfo = pageInfo(cursors, page.More, after)
	out.TotalCount = whole(len(out.Edges), page.More, after)
	return out, nil
}

func revisionOf(c projections.Company) *model.CompanyRevision {
	return &model.CompanyRevision{
		Revision: *number(c.Revision), Name: c.Name, Digest: c.Digest, SeatCount: c.Seats,
		Position: model.Position(c.Position), AppliedAt: stamped(c.At), Actor: text(c.Actor), Reason: text(c.Reason),
	}
}

type revisionResolver struct{ deps *Deps }

// Document reads the document from the log.
func (v revisionResolver) Document(ctx context.Context, c *model.CompanyRevision) (string, error) {
	return v.deps.Company.Document(ctx, uint64(c.Position))
}
