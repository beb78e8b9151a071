package main

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The API's answers, under the API's own names: -o json writes them again as
// they are. A pointer is nil where the API answers null.

type asOf struct {
	AnsweredBy string     `json:"answeredBy"`
	Position   string     `json:"position"`
	AsOf       *time.Time `json:"asOf"`
	Lag        *int       `json:"lag"`
	Copy       string     `json:"copy"`
}

const asOfFields = `asOf { answeredBy position asOf lag copy }`

// sentence says where an answer stands.
func (a asOf) sentence(now time.Time) string {
	text := "as of position " + plain(a.Position)
	if a.AsOf != nil {
		text += ", " + ago(a.AsOf, now)
	}
	return text + ", answered by " + plain(a.AnsweredBy) + a.doubt()
}

// doubt is what there is to say of a copy that is not level with the log.
func (a asOf) doubt() string {
	switch {
	case a.Copy == "CURRENT":
		return ""
	case a.Copy == "BEHIND" && a.Lag != nil:
		return fmt.Sprintf("; its copy is behind by %d events", *a.Lag)
	}
	return "; its copy is " + plain(a.Copy) + ", so this may be old"
}

type apiNode struct {
	ID                string     `json:"id"`
	Incarnation       string     `json:"incarnation"`
	State             string     `json:"state"`
	Roles             []string   `json:"roles"`
	Labels            []apiLabel `json:"labels"`
	Protocol          int        `json:"protocol"`
	PresenceExpiresAt *time.Time `json:"presenceExpiresAt"`
	Since             *time.Time `json:"since"`
	SeatsHeld         *int       `json:"seatsHeld"`
	CompanyRevision   *int       `json:"companyRevision"`
}

type apiLabel struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

const nodeFields = `id incarnation state roles labels { key value } protocol presenceExpiresAt since seatsHeld companyRevision`

// roleList shows a node's roles; none of them means all.
func (n apiNode) roleList() string {
	if len(n.Roles) == 0 {
		return "all"
	}
	return list(n.Roles)
}

func (n apiNode) labelList() string {
	pairs := make([]string, len(n.Labels))
	for i, l := range n.Labels {
		pairs[i] = l.Key + "=" + l.Value
	}
	return list(pairs)
}

type apiSeat struct {
	Handle  string     `json:"handle"`
	AgentID string     `json:"agentId"`
	Title   *string    `json:"title"`
	State   string     `json:"state"`
	Owner   *string    `json:"owner"`
	Epoch   *string    `json:"epoch"`
	Since   *time.Time `json:"since"`
	Paused  bool       `json:"paused"`
}

const seatFields = `handle agentId title state owner epoch since paused`

// apiSeatInFull is a seat with what is asked for one alone.
type apiSeatInFull struct {
	apiSeat
	ExpiresAt *time.Time `json:"expiresAt"`
	Preferred *string    `json:"preferred"`
	Pause     *struct {
		By       string     `json:"by"`
		Reason   string     `json:"reason"`
		Since    *time.Time `json:"since"`
		StopTurn bool       `json:"stopTurn"`
	} `json:"pause"`
	UnprovenSeconds *int `json:"unprovenSeconds"`
	Handoff         *struct {
		ID   string  `json:"id"`
		Step string  `json:"step"`
		To   *string `json:"to"`
	} `json:"handoff"`
	Tenures tenureList `json:"tenures"`
}

// node is the node that the log names as the holder; "-" when nobody is.
func (s apiSeat) node() string {
	if s.Owner == nil {
		return none
	}
	id, _, _ := strings.Cut(*s.Owner, ":")
	return plain(id)
}

// held shows a value that only a seat with a holder has.
func (s apiSeat) held(show func() string) string {
	if s.Owner == nil {
		return none
	}
	return show()
}

type tenureList struct {
	Edges []struct {
		Node apiTenure `json:"node"`
	} `json:"edges"`
	PageInfo pageInfo `json:"pageInfo"`
}

type pageInfo struct {
	HasNextPage bool    `json:"hasNextPage"`
	EndCursor   *string `json:"endCursor"`
}

type apiTenure struct {
	Handle          string     `json:"handle"`
	Epoch           string     `json:"epoch"`
	Owner           string     `json:"owner"`
	NodeID          string     `json:"nodeId"`
	ClaimedAt       time.Time  `json:"claimedAt"`
	ClaimedPosition string     `json:"claimedPosition"`
	EndedAt         *time.Time `json:"endedAt"`
	EndedPosition   *string    `json:"endedPosition"`
	End             *string    `json:"end"`
	Reason          *string    `json:"reason"`
}

const tenureFields = `handle epoch owner nodeId claimedAt claimedPosition endedAt endedPosition end reason`

type sendResult struct {
	ID           string      `json:"id"`
	MailSequence string      `json:"mailSequence"`
	Completion   *completion `json:"completion"`
}

type completion struct {
	Handle     string          `json:"handle"`
	WorkKey    *string         `json:"workKey"`
	EventIDs   []string        `json:"eventIds"`
	Epoch      *string         `json:"epoch"`
	Node       *string         `json:"node"`
	At         time.Time       `json:"at"`
	Outcome    string          `json:"outcome"`
	Skipped    bool            `json:"skipped"`
	Attempts   *int            `json:"attempts"`
	Reply      json.RawMessage `json:"reply"`
	ReplyBytes *int            `json:"replyBytes"`
	Why        *string         `json:"why"`
}

const completionFields = `handle workKey eventIds epoch node at outcome skipped attempts reply replyBytes why`

// isoDuration is what of ISO 8601 the API writes: no years and no months, which
// have no length.
var isoDuration = regexp.MustCompile(`^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$`)

// parseISO reads a duration of the API.
func parseISO(s string) (time.Duration, bool) {
	parts := isoDuration.FindStringSubmatch(s)
	if parts == nil || s == "P" || strings.HasSuffix(s, "T") {
		return 0, false
	}
	seconds := 0.0
	for i, unit := range []float64{24 * 60 * 60, 60 * 60, 60, 1} {
		if parts[i+1] == "" {
			continue
		}
		n, err := strconv.ParseFloat(parts[i+1], 64)
		if err != nil {
			return 0, false
		}
		seconds += n * unit
	}
	d := seconds * float64(time.Second)
	return time.Duration(math.Round(d)), d < math.MaxInt64
}

// writeISO writes a duration for the API.
func writeISO(d time.Duration) string {
	return "PT" + strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "S"
}
