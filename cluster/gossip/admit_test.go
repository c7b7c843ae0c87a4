package gossip

import (
	"errors"
	"testing"
)

func TestAdmit(t *testing.T) {
	meta := func(id string) []byte {
		b, _ := Meta{ClusterID: id}.encode()
		return b
	}
	view := []Member{
		{Name: "self", Address: "10.0.0.1:1", State: Alive},
		{Name: "b", Address: "10.0.0.2:1", State: Alive, Meta: Meta{ClusterID: "x"}},
		{Name: "dead", Address: "10.0.0.3:1", State: Failed, Meta: Meta{ClusterID: "z"}},
	}
	tests := map[string]struct {
		cluster string
		a       applicant
		want    Refusal
	}{
		"new":                      {"x", applicant{"c", "10.0.0.9:1", meta("x"), 1, 1}, ""},
		"of no cluster":            {"x", applicant{"c", "10.0.0.9:1", meta(""), 1, 1}, ""},
		"of another":               {"x", applicant{"c", "10.0.0.9:1", meta("y"), 1, 1}, OtherCluster},
		"of another than the view": {"", applicant{"c", "10.0.0.9:1", meta("y"), 1, 1}, OtherCluster},
		"known":                    {"x", applicant{"b", "10.0.0.2:1", meta("x"), 1, 1}, ""},
		"known in a new cluster":   {"", applicant{"b", "10.0.0.2:1", meta("y"), 1, 1}, ""},
		"name taken":               {"x", applicant{"b", "10.0.0.9:1", meta("x"), 1, 1}, NameTaken},
		"name free":                {"x", applicant{"dead", "10.0.0.9:1", meta("x"), 1, 1}, ""},
		"address taken":            {"x", applicant{"c", "10.0.0.2:1", meta("x"), 1, 1}, AddressTaken},
		"own address":              {"x", applicant{"c", "10.0.0.1:1", meta("x"), 1, 1}, AddressTaken},
		"address free":             {"x", applicant{"c", "10.0.0.3:1", meta("x"), 1, 1}, ""},
		"itself":                   {"x", applicant{"self", "10.0.0.1:1", nil, 1, 1}, ""},
		"own name":                 {"x", applicant{"self", "10.0.0.9:1", meta("x"), 1, 1}, NameTaken},
		"later protocol":           {"x", applicant{"c", "10.0.0.9:1", meta("x"), 2, 3}, OtherProtocol},
		"wider protocol":           {"x", applicant{"c", "10.0.0.9:1", meta("x"), 1, 3}, ""},
		"earlier protocol":         {"x", applicant{"c", "10.0.0.9:1", meta("x"), 0, 0}, OtherProtocol},
		"no metadata":              {"x", applicant{"c", "10.0.0.9:1", nil, 1, 1}, OtherProtocol},
		"strange name":             {"x", applicant{"c\n", "10.0.0.9:1", meta("x"), 1, 1}, OtherProtocol},
	}
	for name, tt := range tests {
		err := admit("self", "10.0.0.1:1", tt.cluster, view, tt.a)
		var r *RefusedError
		if errors.As(err, &r); err == nil && tt.want != "" || err != nil && (r == nil || r.Reason != tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
