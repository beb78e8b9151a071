package main

import (
	"io"
	"net/http"
	"regexp"
	"testing"
)

// TestMetrics proves that a running node serves its metrics beside its API, told
// by its own host, read model, log clock and broker, and that pages of other
// sites do not get them.
func TestMetrics(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a node")
	}
	n := startNode(t, "dev", "--ephemeral", "--listen", "127.0.0.1:0")
	scrape := func(site string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.url+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Sec-Fetch-Site", site)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		page, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(page)
	}
	if status, _ := scrape("cross-site"); status != http.StatusForbidden {
		t.Errorf("another site's page gets %d", status)
	}
	n.awaitHeld(0, 5, startLimit)
	n.must(nil, "send", "writer", "--wait") // the API answers beside it
	status, page := scrape("none")
	if status != http.StatusOK {
		t.Fatalf("got %d %s", status, page)
	}
	for _, line := range []string{
		`tenure_build_info\{.*protocol="4".*\} 1`,
		`tenure_broker_connected 1`,
		`tenure_node_seats 5`,
		`tenure_claim_seconds_count\{outcome="done"\} 5`,
		`tenure_turns_ended_total\{outcome="completed"\} 1`,
		`tenure_log_clock_head [1-9]\d*`,
		`tenure_projection_position\{stream="fleet"\} [1-9]\d*`,
		`go_goroutines \d+`,
	} {
		if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(page) {
			t.Errorf("no line %s in\n%s", line, page)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
