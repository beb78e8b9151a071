package badgerstore_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childEnv makes the test binary a child that does what the variable names.
const childEnv = "TENURE_BADGERSTORE_CHILD"

func TestMain(m *testing.M) {
	if what := os.Getenv(childEnv); what != "" {
		os.Exit(runChild(what))
	}
	// A Badger that fails to open leaves its cache's watchers behind; they wait
	// for nothing and hold nothing open. The damage tests provoke that.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/dgraph-io/badger/v4.(*DB).monitorCache"),
		goleak.IgnoreAnyFunction("github.com/dgraph-io/badger/v4.(*DB).updateSize"),
		goleak.IgnoreAnyFunction("github.com/dgraph-io/badger/v4/y.(*WaterMark).process"),
		goleak.IgnoreAnyFunction("github.com/dgraph-io/ristretto/v2.(*Cache[...]).processItems"),
		goleak.IgnoreAnyFunction("github.com/dgraph-io/ristretto/v2.(*defaultPolicy[...]).processItems"),
		goleak.IgnoreAnyFunction("github.com/dgraph-io/ristretto/v2/z.(*AllocatorPool).freeupAllocators"),
	)
}
