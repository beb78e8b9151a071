package nodes

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/seat-tenure/tenure/bench/measure"
)

// moveGoal bounds the time for which a planned move leaves a seat dark, in 99 of
// 100, in ms.
const moveGoal = 100

// Moves measures planned moves: it runs BenchmarkDrain of cmd/node, which empties
// a node of ten seats under mail that many times and lets it take its share
// again, and reads what the log says of each seat's dark time.
func Moves(ctx context.Context, times int) ([]measure.Figure, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkDrain$",
		"-benchtime", fmt.Sprintf("%dx", times), "github.com/seat-tenure/tenure/cmd/node")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("the benchmark of drains: %w\n%s", err, out)
	}
	var figures []measure.Figure
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "BenchmarkDrain") {
			figures = append(figures, metrics(lines.Text())...)
		}
	}
	if len(figures) == 0 {
		return nil, fmt.Errorf("the benchmark of drains said nothing:\n%s", out)
	}
	return figures, nil
}

// metrics reads a benchmark's line: a value, its unit, and so on.
func metrics(line string) (figures []measure.Figure) {
	fields := strings.Fields(line)
	for i := 2; i+1 < len(fields); i += 2 {
		value, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			continue
		}
		switch fields[i+1] {
		case "dark-p50-ms":
			figures = append(figures, measure.Figure{Name: "move/dark-p50", Unit: "ms", Value: measure.Round(value)})
		case "dark-p99-ms":
			figures = append(figures, measure.Figure{Name: "move/dark-p99", Unit: "ms", Value: measure.Round(value), Goal: moveGoal, AtMost: true})
		case "dark-p50/write":
			figures = append(figures, measure.Figure{Name: "move/dark-p50-in-writes", Unit: "writes", Value: measure.Round(value)})
		}
	}
	return figures
}
