package company_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seat-tenure/tenure/company"
)

// TestParseIsBounded proves that documents made to cost more than they weigh
// are refused, each for its own reason.
func TestParseIsBounded(t *testing.T) {
	billion := func(levels int) string {
		var b strings.Builder
		b.WriteString("company: {name: Acme}\nroles:\n- &l0 [a, a, a, a, a, a, a, a, a, a]\n")
		for i := 1; i < levels; i++ {
			fmt.Fprintf(&b, "- &l%d [%s]\n", i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d, ", i-1), 10), ", "))
		}
		return b.String()
	}
	for _, test := range []struct{ name, doc, want string }{
		{"size", strings.Repeat("#", company.MaxDocument+1), "is 4194305 bytes, and at most 4194304 are read"},
		{"tokens", "[" + strings.Repeat("1,", 600_000) + "1]", "has 600002 signs that YAML knows, and at most 524288 are read"},
		{"flow nesting", strings.Repeat("[", 100_000), "nested deeper than 64 levels"},
		{"map nesting", strings.Repeat("{a: ", 100_000), "nested deeper than 64 levels"},
		{"inline nesting", strings.Repeat("- ", 100_000) + "a", "nested deeper than 64 levels"},
		{"block nesting", blocks(100), "nested deeper than 64 levels"},
		{"aliases", billion(9), "aliases expand to more than 1048576 values"},
		{"no UTF-8", "company: {name: Acme}\nroles: \xff", "company.yaml:2:8: is not UTF-8 text"},
		{"a long name", "company: {name: " + strings.Repeat("x", 129) + "}\nroles: []", "is 129 bytes, and at most 128 are allowed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := company.Parse("company.yaml", []byte(test.doc))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %.300v, want %q", err, test.want)
			}
		})
	}
}

func blocks(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// TestProblemsAreBounded proves that a document wrong in a thousand places is
// answered with a hundred, the count of the rest, and no endless line.
func TestProblemsAreBounded(t *testing.T) {
	doc := "company: {name: Acme}\nroles:\n" + strings.Repeat("  - {handle: "+strings.Repeat("X", 5000)+", runner: {echo: {}}}\n", 800)
	_, err := company.Parse("company.yaml", []byte(doc))
	var problems company.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("got %T, want problems", err)
	}
	if len(problems) != 101 || problems[100].Message != "700 more problems are not shown" {
		t.Errorf("got %d problems, the last %q; want 101 and a count of 700", len(problems), problems[len(problems)-1].Message)
	}
	if n := len(err.Error()); n > 64<<10 {
		t.Errorf("got %d bytes of problems, want at most 64 KiB", n)
	}
}

// TestTenThousandSeats proves that a big company is read, and packs into far
// less than a payload.
func TestTenThousandSeats(t *testing.T) {
	var b strings.Builder
	b.WriteString("company: {name: Acme}\nroles:\n")
	for i := range 10_000 {
		fmt.Fprintf(&b, "  - handle: seat-%d\n    title: Seat %d\n    placement: {labels: {zone: z%d}}\n    runner: {echo: {}}\n", i, i, i%7)
	}
	c := mustParse(t, b.String())
	if n := len(c.AgentSeats()); n != 10_000 {
		t.Errorf("got %d seats, want 10000", n)
	}
	packed, _, err := company.Pack([]byte(b.String()), 1<<20)
	if err != nil {
		t.Fatalf("pack: %v", err)
	}
	t.Logf("%d bytes pack into %d", b.Len(), len(packed))
}

// TestPackRoundTrip proves that what is packed comes back byte for byte, and
// that the same document has the same form and digest every time.
func TestPackRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := rapid.SliceOfN(rapid.Byte(), 0, 4096).Draw(t, "doc")
		packed, digest, err := company.Pack(doc, 1<<20)
		if err != nil {
			t.Fatalf("pack: %v", err)
		}
		again, digest2, err := company.Pack(doc, 1<<20)
		if err != nil || !bytes.Equal(packed, again) || digest != digest2 || digest != company.Digest(doc) {
			t.Fatalf("packed twice: got %x %s (%v), want %x %s", again, digest2, err, packed, digest)
		}
		back, err := company.Unpack(packed)
		if err != nil || !bytes.Equal(back, doc) {
			t.Fatalf("unpack: got %x (%v), want %x", back, err, doc)
		}
	})
}

// TestPackRefusesWithBothSizes proves that a document beyond the payload limit
// is refused with its packed size and the limit.
func TestPackRefusesWithBothSizes(t *testing.T) {
	packed, _, err := company.Pack([]byte(staff), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	limit := len(packed) - 1
	_, _, err = company.Pack([]byte(staff), limit)
	var large *company.TooLargeError
	if !errors.As(err, &large) || large.Have != len(packed) || large.Limit != limit {
		t.Fatalf("got %v, want %d bytes over a limit of %d", err, len(packed), limit)
	}
	if want := fmt.Sprintf("the company's packed document is %d bytes, and at most %d fit; shorten it, or raise the broker's payload limit", len(packed), limit); err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if _, _, err := company.Pack(make([]byte, company.MaxDocument+1), 1<<30); !errors.As(err, &large) || large.Limit != company.MaxDocument {
		t.Errorf("got %v, want the document's own limit", err)
	}
}

// TestUnpackIsBounded proves that a small input cannot become a large document
// and that nothing is accepted beside or instead of one.
func TestUnpackIsBounded(t *testing.T) {
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	for range 8 {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var large *company.TooLargeError
	if _, err := company.Unpack(bomb.Bytes()); !errors.As(err, &large) {
		t.Errorf("bomb of %d bytes: got %v, want a TooLargeError", bomb.Len(), err)
	}
	packed, _, err := company.Pack([]byte(staff), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(packed)
	flipped[len(flipped)-5] ^= 1 // in the checksum
	for name, in := range map[string][]byte{
		"empty": {}, "not gzip": []byte("company: {}"), "cut": packed[:len(packed)-3],
		"damaged": flipped, "two": append(bytes.Clone(packed), packed...),
	} {
		if doc, err := company.Unpack(in); !errors.Is(err, company.ErrPacked) || doc != nil {
			t.Errorf("%s: got %d bytes, %v; want ErrPacked", name, len(doc), err)
		}
	}
}

// either checks the one rule of Parse: a company or problems, never both,
// never neither, and every problem says where, what and what to do.
func either(doc []byte) error {
	c, err := company.Parse("company.yaml", doc)
	if err == nil {
		if c.Name == "" {
			return fmt.Errorf("a company without a name: %+v", c)
		}
		return nil
	}
	var problems company.Problems
	switch {
	case !errors.As(err, &problems) || len(problems) == 0:
		return fmt.Errorf("got %T, want problems", err)
	case !reflect.ValueOf(c).IsZero():
		return fmt.Errorf("a company beside problems: %+v", c)
	}
	for _, p := range problems {
		if p.Source == "" || p.Message == "" || p.Fix == "" {
			return fmt.Errorf("a problem without place, message or fix: %+v", p)
		}
	}
	return nil
}

// TestParseNeverGivesBoth proves that rule over documents put together from
// good and bad pieces.
func TestParseNeverGivesBoth(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"handle: a", "handle: b", "handle: A B", "handle: 1", "handle: ~", "title: x", "title: [x]", "kind: agent", "kind: human", "kind: ghost",
		"placement: {node: n}", "placement: {labels: {z: a}}", "placement: {node: n, labels: {z: a}}", "placement: &p {}", "placement: *p",
		"runner: {echo: {}}", "runner: {exec: [x]}", "runner: {exec: [x], timeout: 1s}", "runner: {exec: [x], timeout: 0s}", "runner: {}", "color: red",
	})
	rapid.Check(t, func(t *rapid.T) {
		doc := rapid.SampledFrom([]string{"company: {name: Acme}\n", "company: {name: ''}\n", "company: {}\n", ""}).Draw(t, "head") + "roles:\n"
		for range rapid.IntRange(0, 3).Draw(t, "roles") {
			doc += "  - {" + strings.Join(rapid.SliceOfN(piece, 0, 5).Draw(t, "role"), ", ") + "}\n"
		}
		if err := either([]byte(doc)); err != nil {
			t.Fatalf("%s\n%v", doc, err)
		}
	})
}

// FuzzParse proves that no input panics and that the same rule holds.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{staff, "", "{", "- - -", "a: &a [*a]", "<<: *x", "? a\n: b", "%YAML 1.2\n---\n{}", "company: !!str {name: |\n  x}", "{\"company\": {\"name\": \"A\"}, \"roles\": []}", "a: >-\n\n\tb", "\ufeffcompany: {}\r\nroles: []\r\n", "&a : *a", "&a", "!", "*", "'", "{? }", "[a: b: c]", "---\n...\n---"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		if err := either(doc); err != nil {
			t.Fatal(err)
		}
	})
}
