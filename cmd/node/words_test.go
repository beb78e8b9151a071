package main

import (
	"strings"
	"testing"

	"github.com/seat-tenure/tenure/company"
)

// TestTailSaysWhatFits: a revision is told by its number and name, not by packed
// bytes that push them off the line, and cursors of one seat are told apart.
func TestTailSaysWhatFits(t *testing.T) {
	packed := strings.Repeat("H4sI", maxDetail)
	said := detail([]byte(`{"revision":3,"name":"Acme","digest":"5167","document":"` + packed + `","roster":"` + packed + `"}`))
	if want := "digest=5167 document=… name=Acme revision=3 roster=…"; said != want {
		t.Errorf("got %q, want %q", said, want)
	}
	for subject, want := range map[string]string{
		"crewlet.cursor.writer.reflect": "writer.reflect",
		"crewlet.fleet.host.writer":     "writer",
		"crewlet.work.writer.0bafe2":    "writer",
	} {
		if text, seat := about(subject); text != want || seat != "writer" {
			t.Errorf("%s: got %q about seat %q, want %q about writer", subject, text, seat, want)
		}
	}
}

// TestBannerIsOfTheCompanyInForce: what dev proposes to try works with the company
// that it runs, which need not be the demo.
func TestBannerIsOfTheCompanyInForce(t *testing.T) {
	seats := func(handles ...string) (c company.Company) {
		c.Name = "Acme"
		for _, h := range handles {
			c.Roles = append(c.Roles, company.Role{Handle: h, Kind: company.Agent})
		}
		c.Roles = append(c.Roles, company.Role{Handle: "owner", Kind: company.Human})
		return c
	}
	for _, one := range []struct {
		of          company.Company
		words, seat string
	}{
		{seats("lead", "writer", "ops"), "company Acme, 3 seats", "writer"},
		{seats("editor"), "company Acme, 1 seat", "editor"},
		{seats(), "company Acme, 0 seats", "SEAT"},
	} {
		if words, seat := companyWords(one.of), aSeat(one.of); words != one.words || seat != one.seat {
			t.Errorf("got %q, to try with %q; want %q and %q", words, seat, one.words, one.seat)
		}
	}
}
