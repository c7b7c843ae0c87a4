package rest

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

type adopter struct{ got []AdoptRequest }

func (a *adopter) Adopt(_ context.Context, r AdoptRequest) (AdoptReport, error) {
	if r.Mask == 0 {
		return AdoptReport{}, AdoptRefusal("the mask 0 matches everything")
	}
	a.got = append(a.got, r)
	return AdoptReport{Switches: []AdoptView{{ID: "of:0000000000000001", Matched: 3, Replaced: 1, Removed: 2, Groups: 1, Added: 4}}}, nil
}

func TestAdoption(t *testing.T) {
	a := &adopter{}
	l := newLab(t, func(c *Config) { c.Adopter = a })
	const path, cookie = "/kvnet/v1/adopt", `"cookie":"0x00b5000000000000/0xffff000000000000"`
	viewer, body := map[string]string{"Authorization": viewerAuth, "Content-Type": "application/json"}, "{"+cookie+"}"
	if r := l.send(http.MethodPost, path, viewer, &body); r.status != http.StatusForbidden || len(a.got) != 0 {
		t.Errorf("a viewer got %d", r.status)
	}
	const want = `{"switches":[{"id":"of:0000000000000001","matched":3,"replaced":1,"removed":2,"groups":1,"added":4,"error":""}],"waiting":[]}`
	if r := l.must(http.StatusOK, http.MethodPost, path, "{"+cookie+`,"dryRun":true}`); string(r.body) != want {
		t.Errorf("answer %s", r.body)
	}
	l.must(http.StatusOK, http.MethodPost, path, "{"+cookie+`,"switch":"of:00000000000000a1","dryRun":false}`)
	all := AdoptRequest{Cookie: 0xb5 << 48, Mask: 0xffff << 48, DryRun: true}
	one := AdoptRequest{Cookie: 0xb5 << 48, Mask: 0xffff << 48, Switch: 0xa1}
	if len(a.got) != 2 || a.got[0] != all || a.got[1] != one {
		t.Errorf("asked for %+v", a.got)
	}
	for body, part := range map[string]string{
		`{}`:                  "cookie",
		`{"cookie":"b5"}`:     "64-bit number",
		`{"cookie":"0xb5/x"}`: "mask",
		`{"cookie":"0xb5/0"}`: "matches everything",
		`{"cookie":"0xb5/0xff","switch":"br-int"}`: "switch",
		`{"cookie":"0x1ffffffffffffffff/0xff"}`:    "64-bit number",
	} {
		if r := l.must(http.StatusBadRequest, http.MethodPost, path, body); !strings.Contains(string(r.body), part) {
			t.Errorf("%s: %s", body, r.body)
		}
	}
}
