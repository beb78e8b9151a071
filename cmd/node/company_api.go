package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/company"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
)

// apiCompany is the company as the API sees and changes it.
type apiCompany struct {
	*roster
	n *node
}

// Apply implements graph.Company. The lists compare with the revision that is
// replaced, not with one that came in between: over another one nothing is
// written.
func (a apiCompany) Apply(ctx context.Context, by graph.Act, document string, expected *uint64, dry bool) (graph.Applied, error) {
	after, next, err := packCompany("", []byte(document))
	if problems := asProblems(err); problems != nil {
		return graph.Applied{Problems: problems}, nil
	}
	if err != nil {
		return graph.Applied{}, err
	}
	r, found, err := a.n.shell.Company(ctx)
	if err != nil {
		return graph.Applied{}, err
	}
	now, _ := r.Event.(events.CompanyApplied)
	out := graph.Applied{Before: now.Revision}
	if found {
		before, err := readCompany(now)
		if err != nil {
			return graph.Applied{}, err
		}
		out.Changes = company.Diff(before, after)
	} else {
		out.Changes = company.Diff(company.Company{}, after)
	}
	switch {
	case found && now.Digest == next.Digest:
		out.Revision, out.Unchanged = now.Revision, true
		return out, nil
	case expected != nil && *expected != now.Revision:
		return graph.Applied{}, &aggregates.StaleRevisionError{Expected: *expected, Current: now.Revision}
	case dry:
		return out, nil
	}
	applied, err := a.n.shell.ApplyOver(commands.Acting(ctx, by.Actor, by.Reason), now.Revision, next)
	if problems := asProblems(err); problems != nil {
		return graph.Applied{Problems: problems}, nil
	}
	if err != nil {
		return graph.Applied{}, err
	}
	a.n.log.Info("operator_command", "command", "company-apply", "actor", by.Actor, "reason", by.Reason, "revision", applied.Revision)
	out.Revision = applied.Revision
	return out, nil
}

// asProblems is what is wrong with the document itself; nil when err is about
// something else.
func asProblems(err error) company.Problems {
	var problems company.Problems
	if errors.As(err, &problems) {
		return problems
	}
	if errors.As(err, new(*company.TooLargeError)) || errors.As(err, new(*commands.TooLargeError)) {
		return company.Problems{{Message: err.Error()}}
	}
	return nil
}

// readCompany reads the document of a revision.
func readCompany(e events.CompanyApplied) (company.Company, error) {
	doc, err := company.Unpack(e.Document)
	if err != nil {
		return company.Company{}, fmt.Errorf("company revision %d: %w", e.Revision, err)
	}
	c, err := company.Parse(fmt.Sprintf("revision %d", e.Revision), doc)
	if err != nil {
		return company.Company{}, fmt.Errorf("company revision %d: %w", e.Revision, err)
	}
	return c, nil
}

// Document implements graph.Company.
func (a apiCompany) Document(ctx context.Context, position uint64) (string, error) {
	r, err := a.n.recordAt(ctx, events.StreamFleet, position)
	if err != nil {
		return "", err
	}
	c, is := r.Event.(events.CompanyApplied)
	if !is {
		return "", fmt.Errorf("position %d of the log holds no revision of the company", position)
	}
	doc, err := company.Unpack(c.Document)
	return string(doc), err
}
