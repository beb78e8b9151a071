package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seat-tenure/tenure/audit"
	"github.com/seat-tenure/tenure/events"
)

func (c *cli) eventExportCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "the whole history as a file that proves itself",
		Long: `Writes the history of FLEET, CURSOR, WORK and DEAD as JSON lines: a header, then
every event by stream and sequence, each line with a running hash over all before
it. What arrives is held against the header and the hashes.

With --file the export is written beside it and takes its name only when it is
whole, so that the name never stands for a part; what stood there is replaced.
The file is for its owner's eyes: completions and parked mail hold what was said.`,
		Example: `  tenure event export --file history.jsonl
  tenure event export | gzip > history.jsonl.gz`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("output") && c.format != formatJSONL {
				return usagef("--output: an export is always JSON lines; leave it out, --file names the file")
			}
			return c.export(cmd, file)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "write to this file, whole or not at all (default stdout)")
	return cmd
}

func (c *cli) export(cmd *cobra.Command, file string) error {
	cl, err := c.client(cmd)
	if err != nil {
		return err
	}
	defer cl.close()
	var sum exported
	receive := func(w io.Writer) error {
		body, err := cl.export(cmd.Context())
		if err != nil {
			return err
		}
		defer body.Close()
		report, done := progress(cmd.ErrOrStderr(), "export")
		defer done()
		sum, err = copyExport(w, &counted{Reader: body, report: report})
		return err
	}
	name := "stdout"
	if file == "" {
		err = receive(cmd.OutOrStdout())
	} else {
		name = file
		err = replaceFile(file, receive) // before the node is asked to collect anything
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "exported %s to %s\nchain %s\n", sum.sentence(), name, sum.chain)
	return nil
}

// exported is what went by of an export.
type exported struct {
	streams []audit.StreamHeader
	counts  map[events.Stream]uint64
	chain   string
}

func (e exported) sentence() string {
	parts := make([]string, len(e.streams))
	for i, s := range e.streams {
		parts[i] = fmt.Sprintf("%d of %s", e.counts[s.Stream], s.Stream)
	}
	return "events: " + strings.Join(parts, ", ")
}

// copyExport copies an export as it is and holds it to be whole: every line of
// the format and chained to the one before, as many as the header announces. It
// does not judge the history, which is audit's.
func copyExport(w io.Writer, r io.Reader) (exported, error) {
	out := bufio.NewWriterSize(w, 64<<10)
	in, err := audit.NewReader(io.TeeReader(r, out))
	var bad *audit.LineError
	if errors.As(err, &bad) {
		return exported{}, fmt.Errorf("what the node sent is no export that this build reads: %w", err)
	}
	if err != nil {
		return exported{}, err
	}
	sum := exported{streams: in.Header().Streams, counts: map[events.Stream]uint64{}}
	for {
		entry, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && entry.Broken {
			err = &audit.LineError{Line: entry.Line, Err: errors.New("its hash does not fit the lines before it")}
		}
		if errors.As(err, &bad) {
			return exported{}, fmt.Errorf("the export was damaged on its way: %w", err)
		}
		if err != nil {
			return exported{}, err
		}
		sum.counts[entry.Message.Stream]++
	}
	for _, s := range sum.streams {
		if got := sum.counts[s.Stream]; got != s.Count {
			return exported{}, fmt.Errorf("the export is not whole: its header announces %d lines of %s and %d came; try again", s.Count, s.Stream, got)
		}
	}
	sum.chain = in.Chain()
	return sum, out.Flush()
}

// replaceFile puts what write writes under a name, or leaves the name as it was.
// It is durable when it returns nil.
func replaceFile(name string, write func(io.Writer) error) error {
	dir := filepath.Dir(name)
	f, err := os.CreateTemp(dir, "."+filepath.Base(name)+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", name, pathError(err))
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncFolder(dir)
}

// syncFolder makes a rename outlast a power cut. A folder that may be written to
// and not read cannot be synced; the name stands all the same.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
