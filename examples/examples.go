// Package examples holds the company and the node file that `tenure dev` runs
// when it is given none. They are ordinary files, meant to be copied.
package examples

import _ "embed" // the files below are part of the binary

// AcmeCompany is acme/company.yaml: five seats that echo, and one human.
//
//go:embed acme/company.yaml
var AcmeCompany []byte

// AcmeNode is acme/node.yaml: a single node, every key with its default.
//
//go:embed acme/node.yaml
var AcmeNode []byte
