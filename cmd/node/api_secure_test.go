package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func fileOf(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAPIAsksForTokens: a node whose file names tokens answers nobody else, and
// what is done with one is done in its name.
func TestAPIAsksForTokens(t *testing.T) {
	tokens := fileOf(t, "tokens", "# who may operate\n\ncarol:0123456789abcdef\n")
	node := startNode(t, "run", "--node-id", "a", "--data-dir", t.TempDir(), "--api-listen", "127.0.0.1:0", "--api-tokens", tokens,
		"--company", echoCompany(t, 1))
	node.awaitHeld(0, 1, startLimit) // by then it has read the log
	if _, errs, code := node.tenure("node", "cordon", "a", "--reason", "x"); code != exitFailed || !strings.Contains(errs, "asks for a token") {
		t.Errorf("without a token: exit %d %s", code, errs)
	}
	wrong := fileOf(t, "token", "fedcba9876543210")
	if _, errs, code := node.tenure("--token-file", wrong, "node", "ls"); code != exitFailed || !strings.Contains(errs, "does not know the token") {
		t.Errorf("with another token: exit %d %s", code, errs)
	}
	mine := fileOf(t, "token", "0123456789abcdef\n")
	node.must(nil, "--token-file", mine, "node", "cordon", "a", "--reason", "x")
	node.await(30*time.Second, `msg=operator_command command=node-cordon actor=carol reason=x`)
}

// TestAPISpeaksTLS: with a certificate in the node file, and nothing else.
func TestAPISpeaksTLS(t *testing.T) {
	cert, key, roots := selfSigned(t)
	node := startNode(t, "run", "--node-id", "a", "--data-dir", t.TempDir(), "--api-listen", "127.0.0.1:0", "--api-tls-cert", cert, "--api-tls-key", key)
	if !strings.HasPrefix(node.url, "https://") {
		t.Errorf("it says that it answers at %s", node.url)
	}
	trusting := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, node.url+"/health", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := trusting.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("over TLS: got %s", resp.Status)
	}
	if _, errs, code := node.tenure("--addr", strings.Replace(node.url, "https", "http", 1), "node", "ls"); code != exitFailed || !strings.Contains(errs, "speaks TLS") {
		t.Errorf("in the clear: exit %d %s", code, errs)
	}
}

// TestBadTokens: a tokens file that would let nobody in, or anybody, stops the
// start as bad configuration, and no token is repeated in words.
func TestBadTokens(t *testing.T) {
	for name, file := range map[string]string{
		"missing": filepath.Join(t.TempDir(), "none"),
		"empty":   fileOf(t, "tokens", "# nothing\n"),
		"short":   fileOf(t, "tokens", "carol:secret\n"),
		"twice":   fileOf(t, "tokens", "carol:0123456789abcdef\nalice:0123456789abcdef\n"),
		"long":    fileOf(t, "tokens", strings.Repeat("#\n", maxTokensFile)),
	} {
		_, err := readTokens(file)
		if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "0123456789") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// selfSigned is a certificate for 127.0.0.1, and the roots that vouch for it.
func selfSigned(t *testing.T) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &priv.PublicKey, priv)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(parsed)
	return fileOf(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		fileOf(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))), roots
}
