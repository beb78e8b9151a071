package rowstest

import (
	"fmt"
	"testing"

	"github.com/seat-tenure/tenure/projections"
)

// Contract runs every rule of projections.Rows against a store. update runs fn
// in one write transaction and keeps what it did only if fn returned nil; read
// runs fn on a snapshot. The store is fresh.
func Contract(t *testing.T, update, read func(fn func(projections.Rows) error) error) {
	t.Helper()
	do := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	keys := func(r projections.Rows, prefix, after string, limit int) string {
		t.Helper()
		page, err := r.Scan(prefix, after, limit)
		do("scan", err)
		s := ""
		for _, kr := range page {
			s += fmt.Sprintf("%s=%s ", kr.Key, kr.Row)
		}
		return s
	}
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}

	do("first transaction", update(func(r projections.Rows) error {
		if _, found, err := r.Get("f/absent"); found || err != nil {
			t.Errorf("a row that nobody put: found %v, err %v", found, err)
		}
		for _, k := range []string{"f/x/c", "f/x/a", "f/x/b", "f/y", "f/w"} {
			do("put", r.Put(k, []byte(k[2:])))
		}
		expect("reads its own writes", keys(r, "f/x/", "", 10), "f/x/a=x/a f/x/b=x/b f/x/c=x/c ")
		return nil
	}))
	do("second transaction", update(func(r projections.Rows) error {
		expect("page", keys(r, "f/x/", "", 2), "f/x/a=x/a f/x/b=x/b ")
		expect("next page", keys(r, "f/x/", "f/x/b", 2), "f/x/c=x/c ")
		expect("after a key that is not there", keys(r, "f/x/", "f/x/aa", 1), "f/x/b=x/b ")
		expect("nothing asked", keys(r, "f/x/", "", 0), "")
		do("delete", r.Delete("f/x/a"))
		do("delete what is not there", r.Delete("f/x/zz"))
		do("overwrite", r.Put("f/x/b", []byte("new")))
		do("insert between", r.Put("f/x/bb", []byte("mid")))
		do("put and delete", r.Put("f/x/d", []byte("gone")))
		do("put and delete", r.Delete("f/x/d"))
		if _, found, err := r.Get("f/x/a"); found || err != nil {
			t.Errorf("a deleted row: found %v, err %v", found, err)
		}
		expect("merged", keys(r, "f/x/", "", 10), "f/x/b=new f/x/bb=mid f/x/c=x/c ")
		expect("merged, bounded", keys(r, "f/x/", "", 2), "f/x/b=new f/x/bb=mid ")
		return nil
	}))
	refused := fmt.Errorf("refused")
	if err := update(func(r projections.Rows) error {
		do("put", r.Put("f/x/never", []byte("1")))
		do("delete", r.Delete("f/x/c"))
		return refused
	}); err == nil {
		t.Error("a transaction that failed reported success")
	}
	do("read", read(func(r projections.Rows) error {
		expect("a failed transaction leaves nothing", keys(r, "f/x/", "", 10), "f/x/b=new f/x/bb=mid f/x/c=x/c ")
		row, found, err := r.Get("f/x/b")
		if string(row) != "new" || !found || err != nil {
			t.Errorf("get: %q %v %v", row, found, err)
		}
		expect("the end of the keys", keys(r, "f/y", "", 10), "f/y=y ")
		return nil
	}))
}
