package robust_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// client talks to the nodes' APIs. A stopped or cut-off node costs a timeout.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8, IdleConnTimeout: 10 * time.Second}}

const bearer = "Bearer " + token

// errRefusedByNode: the node answered, and did not do it.
var errRefusedByNode = errors.New("refused")

// ask sends a GraphQL document to a node and decodes its data into out.
func (n *node) ask(ctx context.Context, limit time.Duration, query string, variables map[string]any, out any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url()+"/graphql", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", bearer)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		Data   json.RawMessage
		Errors []struct{ Message string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %w", resp.Status, err)
	}
	if len(answer.Errors) > 0 {
		return fmt.Errorf("%w: %s", errRefusedByNode, answer.Errors[0].Message)
	}
	return json.Unmarshal(answer.Data, out)
}

// ready says whether the node answers that it is.
func (n *node) ready(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url()+"/ready", nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// operate asks for an operator's act; what is refused is answered, not done.
func (n *node) operate(ctx context.Context, mutation string, args map[string]string) (string, error) {
	var words []string
	for name, value := range args {
		words = append(words, fmt.Sprintf("%s: %q", name, value))
	}
	query := fmt.Sprintf(`mutation { r: %s(%s) { __typename ... on Refused { code } ... on Accepted { position sagaId } } }`,
		mutation, strings.Join(words, ", "))
	var out struct {
		R struct {
			Typename string `json:"__typename"`
			Code     string
			Position string
		}
	}
	if err := n.ask(ctx, 8*time.Second, query, nil, &out); err != nil {
		return "", err
	}
	if out.R.Typename == "Refused" {
		return "refused " + out.R.Code, nil
	}
	return "accepted at " + out.R.Position, nil
}

// tenureCLI runs a command of the program against a node, as a person would.
func (w *world) tenureCLI(ctx context.Context, n *node, limit time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	full := append([]string{"--addr", n.url(), "--token-file", w.token()}, args...)
	out, err := exec.CommandContext(ctx, w.tenure, full...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("tenure %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return string(out), nil
}
