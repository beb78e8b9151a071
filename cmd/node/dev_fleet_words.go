package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seat-tenure/tenure/company"
)

// banner says where the nodes are and what to try.
func (r *fleetRun) banner(f devFleet, c company.Company) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nTenure is running: %s, %d nodes.\n\n", companyWords(c), len(r.nodes))
	var carriers []string
	for _, n := range r.nodes {
		role := "client"
		if n.carriesLog {
			role = "carries the log"
			carriers = append(carriers, n.id)
		}
		fmt.Fprintf(&b, "  %-8s %s/graphql  %s\n", n.id, n.at, role)
	}
	kept := r.dir
	if f.ephemeral {
		kept += " (removed at the end)"
	}
	addr, first := "", r.nodes[0].at
	if first != "http://"+DefaultConfig().API.Listen {
		addr = " --addr " + first
	}
	tenure := shellQuote(os.Args[0]) + addr
	fmt.Fprintf(&b, `  data     %s

Three things to try in another terminal:

  %[2]s send %[3]s --data '{"text":"hello"}' --wait
  %[2]s node ls
  %[2]s audit

Then kill a node, and see the others take its seats once its leases lapse:

  kill -9 $(cat %[4]s)

The log stands while two of %[5]s do. A killed node stays down; how to bring it
back is said here. Ctrl-C gives the seats back and stops all.

`, kept, tenure, aSeat(c), shellQuote(filepath.Join(r.nodes[1].dir, "pid")), strings.Join(carriers, ", "))
	return b.String()
}

// companyWords is a company in a few words.
func companyWords(c company.Company) string {
	return fmt.Sprintf("company %s, %s", c.Name, count(len(c.AgentSeats()), "seat"))
}

// aSeat is a seat to try things on: the demo company's writer, or one that is there.
func aSeat(c company.Company) string {
	seats := c.AgentSeats()
	switch {
	case len(seats) == 0:
		return "SEAT"
	case slices.ContainsFunc(seats, func(s company.Role) bool { return s.Handle == "writer" }):
		return "writer"
	}
	return seats[len(seats)-1].Handle
}

// obituary says that a node has ended and how to bring it back.
func (r *fleetRun) obituary(c *child) string {
	for _, n := range r.nodes {
		if n.child != c {
			continue
		}
		how := c.cmd.ProcessState.String()
		return fmt.Sprintf("%s has ended (%s) and is not restarted; the others take its seats. To bring it back, in another terminal:\n\n  %s run --config %s\n\n"+
			"It claims seats once the lease of its dead run is over, and logs node_id_in_use until then.\n\n",
			n.id, how, shellQuote(os.Args[0]), shellQuote(n.file))
	}
	return ""
}
