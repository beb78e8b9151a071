package seat

// SetExit replaces how a watchdog ends the process.
func (w *Watchdog) SetExit(exit func(code int)) { w.exit = exit }
