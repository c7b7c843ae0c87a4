package reconcile

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
)

func TestCookiesOfThePipelinePageAreThoseOfItsRules(t *testing.T) {
	text, err := os.ReadFile("../../docs/pipeline.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^cookie=(0x[0-9a-f]+), .*actions=.*$`).FindAllStringSubmatch(string(text), -1)
	if len(lines) < 50 {
		t.Fatalf("the page shows %d rules", len(lines))
	}
	for _, line := range lines {
		rule, err := flow.ParseRule(line[0])
		if err != nil {
			t.Error(err)
			continue
		}
		encoded, err := openflow.EncodeRule(rule)
		if err != nil {
			t.Errorf("%s: %v", rule, err)
			continue
		}
		if cookie := fmt.Sprintf("%#x", cookieOf(encoded)); cookie != line[1] {
			t.Errorf("%s\n\thas the cookie %s, the page says %s", rule, cookie, line[1])
		}
	}
}
