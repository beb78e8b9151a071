// Package measure is what the benchmarks have in common: contenders that are
// measured in turn within one run, the figures that come of it, and the report
// that keeps them with the machine they were taken on.
//
// Guaranteed: a ratio is the median of ratios that were each taken within one
// round, so that what slows the machine down for a while slows both sides. Not
// guaranteed: that two reports can be compared with each other.
//
// Nothing here is safe for more than one goroutine, except where it says so.
package measure

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Figure is one number that was measured.
type Figure struct {
	Name  string  `json:"name"` // stable: suite/conditions/what
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Low and High are the extremes over the rounds; absent where there was one.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
	// Goal is what a ratio or a time is to reach; AtMost says that less is better.
	Goal   float64 `json:"goal,omitempty"`
	AtMost bool    `json:"at_most,omitempty"`
}

// Met says whether the figure reaches its goal; true where it has none.
func (f Figure) Met() bool {
	switch {
	case f.Goal == 0:
		return true
	case f.AtMost:
		return f.Value <= f.Goal
	default:
		return f.Value >= f.Goal
	}
}

// Report is the figures of one run.
type Report struct {
	Taken   string   `json:"taken"` // day
	Machine Machine  `json:"machine"`
	Figures []Figure `json:"figures"`
}

// Add puts figures into the report; one of a name that it has already is
// replaced.
func (r *Report) Add(figures ...Figure) {
	for _, f := range figures {
		if i := slices.IndexFunc(r.Figures, func(have Figure) bool { return have.Name == f.Name }); i >= 0 {
			r.Figures[i] = f
			continue
		}
		r.Figures = append(r.Figures, f)
	}
}

// Find returns the figure of that name.
func (r *Report) Find(name string) (Figure, bool) {
	i := slices.IndexFunc(r.Figures, func(f Figure) bool { return f.Name == name })
	if i < 0 {
		return Figure{}, false
	}
	return r.Figures[i], true
}

// Save writes the report as JSON.
func (r *Report) Save(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Load reads a report.
func Load(path string) (r Report, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}
