package main

import "github.com/spf13/cobra"

// connection is one page of a list, as the API gives it.
type connection[T any] struct {
	AsOf  asOf `json:"asOf"`
	Edges []struct {
		Node T `json:"node"`
	} `json:"edges"`
	PageInfo pageInfo `json:"pageInfo"`
}

// nodes are the page's items; an empty page is [] in JSON, not null.
func (p connection[T]) nodes() []T {
	nodes := make([]T, len(p.Edges))
	for i, e := range p.Edges {
		nodes[i] = e.Node
	}
	return nodes
}

// listing is a list as a command writes it.
type listing[T any] struct {
	whole  any // the one document of -o json
	items  []T // a line each for -o jsonl, a row each for people
	header []string
	row    func(T) []string
}

func (l listing[T]) write(out output) error {
	switch out.format {
	case formatJSON:
		return out.json(l.whole)
	case formatJSONL:
		for _, item := range l.items {
			if err := out.json(item); err != nil {
				return err
			}
		}
		return nil
	default:
		rows := make([][]string, len(l.items))
		for i, item := range l.items {
			rows[i] = l.row(item)
		}
		return out.table(l.header, rows)
	}
}

// writeAsOf writes a list that stands at a. The JSON document has a in it.
func writeAsOf[T any](c *cli, cmd *cobra.Command, l listing[T], a asOf) error {
	out := c.output(cmd)
	if err := l.write(out); err != nil {
		return err
	}
	if out.format != formatJSON {
		c.standing(cmd, a)
	}
	return nil
}

// checkLimit judges how many items of a list are asked for.
func checkLimit(limit, most int) error {
	if limit < 1 || limit > most {
		return usagef("--limit: %d is not between 1 and %d", limit, most)
	}
	return nil
}
