package seat

// SetExit replaces how a watchdog ends the process.
func (w *Watchdog) SetExit(exit func(code int)) { w.exit = exit }

// FireLate does what the timer of a handoff does that fired when the handoff was
// over and forgotten already, and says how many handoffs are to be run.
func (h *Host) FireLate(handle string) int {
	h.runner.elapsed(handle, &fold{})
	h.runner.mu.Lock()
	defer h.runner.mu.Unlock()
	return len(h.runner.due)
}
