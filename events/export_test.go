package events

import (
	"maps"
	"slices"
)

// Names lists every wire name in the registry.
func Names() []string { return slices.Sorted(maps.Keys(registry)) }
