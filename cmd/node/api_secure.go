package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/seat-tenure/tenure/graph"
)

const (
	maxTokensFile = 64 << 10 // bytes
	othersRead    = 0o077    // permissions that are not the owner's
)

// secure reads the tokens that the API asks for and puts TLS on its listener,
// where the node file names them.
func (n *node) secure() error {
	api := n.cfg.API
	if api.Tokens != "" {
		tokens, err := readTokens(api.Tokens)
		if err != nil {
			return &exitError{exitBadConfig, fmt.Errorf("api.tokens: %w", err)}
		}
		n.tokens = tokens
		if info, err := os.Stat(api.Tokens); err == nil && info.Mode().Perm()&othersRead != 0 {
			n.log.Warn("api_tokens_readable", "file", api.Tokens, "mode", info.Mode().Perm().String(), "do", "chmod 600 it: whoever reads it can move and stop seats")
		}
	}
	if api.TLS.Cert == "" {
		return nil
	}
	cert, err := tls.LoadX509KeyPair(api.TLS.Cert, api.TLS.Key)
	if err != nil {
		return &exitError{exitBadConfig, fmt.Errorf("api.tls: %w", pathError(err))}
	}
	n.api = secured{tls.NewListener(n.api, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})}
	return nil
}

// secured tells a listener with TLS from one without.
type secured struct{ net.Listener }

// readTokens reads TOKEN or NAME:TOKEN, one a line; empty lines and those that
// begin with # say nothing. No error repeats a line.
func readTokens(path string) (*graph.Tokens, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, pathError(err))
	}
	defer f.Close()
	var tokens []string
	in := io.LimitedReader{R: f, N: maxTokensFile + 1}
	lines := bufio.NewScanner(&in)
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" && !strings.HasPrefix(line, "#") {
			tokens = append(tokens, line)
		}
	}
	switch {
	case in.N == 0:
		return nil, fmt.Errorf("%s is over %d bytes", path, maxTokensFile)
	case lines.Err() != nil:
		return nil, fmt.Errorf("%s: %w", path, lines.Err())
	}
	known, err := graph.NewTokens(tokens...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return known, nil
}
