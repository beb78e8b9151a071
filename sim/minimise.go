package sim

import "slices"

// Minimise leaves steps out of a script for as long as it fails all the same,
// half of them at first, then fewer at a time, down to single ones. fails is
// asked about each try; since a script may play out differently each time, it
// should play one more than once. The result has been seen to fail.
func Minimise(s Script, fails func(Script) bool) Script {
	for size := max(1, len(s.Steps)/2); ; size = max(1, size/2) {
		before := len(s.Steps)
		for from := 0; from < len(s.Steps); {
			try := s
			try.Steps = slices.Delete(slices.Clone(s.Steps), from, min(from+size, len(s.Steps)))
			if fails(try) {
				s = try
			} else {
				from += size
			}
		}
		if size == 1 && len(s.Steps) == before {
			return s
		}
	}
}
