package events

import "errors"

// CompanyApplied is one revision of the company, whole.
type CompanyApplied struct {
	Revision uint64 `json:"revision"`
	Name     string `json:"name"`
	Digest   string `json:"digest"`   // of the document as written
	Document []byte `json:"document"` // gzipped
	Roster   []byte `json:"roster"`   // gzipped JSON of Seats, for readers that need no more
	Kept

	Seats []RosterSeat `json:"-"` // Roster, unpacked by Decode and packed by Encode
}

// RosterSeat is a seat an agent works on, as routing and placement need it (G1).
type RosterSeat struct {
	Handle  string            `json:"handle"`
	AgentID string            `json:"agent_id"`
	Title   string            `json:"title,omitempty"`
	Node    string            `json:"node,omitempty"`   // placement pinned to a node id
	Labels  map[string]string `json:"labels,omitempty"` // placement by label selector
}

func (CompanyApplied) event() {}

func (e CompanyApplied) validate() error {
	return errors.Join(positive("revision", e.Revision), present("name", e.Name), present("digest", e.Digest))
}
