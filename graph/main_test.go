package graph_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain proves that no request leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
