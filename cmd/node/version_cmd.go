package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is stamped by the build: -ldflags "-X main.version=...".
var version string

// buildVersion is the stamped version, else what the Go toolchain recorded.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unversioned"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && s.Value != "" {
			return s.Value
		}
	}
	return "unversioned"
}

type versionInfo struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (c *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "the build of this program",
		Long: `Shows the build of this program and asks no node. A build without a stamped
version shows what the Go toolchain recorded, else "unversioned".`,
		Example: "  tenure version\n  tenure version -o json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versionInfo{buildVersion(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			out := c.output(cmd)
			if out.format != formatText {
				return out.json(v)
			}
			return out.table(nil, [][]string{{"tenure", v.Version}, {"go", v.Go}, {"platform", v.Platform}})
		},
	}
}
