package handlers_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kvnet/southbound/flow"
)

// pipelinePage is the page that describes the data plane.
const pipelinePage = "../docs/pipeline.md"

// pageDumps are the lines of the page's dumps, by "node bridge". A dump is a block
// whose first line is the command, after the prompt of the node.
func pageDumps(text string) map[string][]string {
	dumps := map[string][]string{}
	prompt := regexp.MustCompile(`^(\w+)# ovs-ofctl .*dump-(?:flows|groups) (br-\w+)`)
	where := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := prompt.FindStringSubmatch(line); m != nil {
			where = m[1] + " " + m[2]
		} else if strings.HasPrefix(line, "```") {
			where = ""
		} else if where != "" && line != "" {
			dumps[where] = append(dumps[where], line)
		}
	}
	return dumps
}

func readPipelinePage(t *testing.T) string {
	text, err := os.ReadFile(pipelinePage)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestThePipelinePageShowsWhatTheHandlersCompute(t *testing.T) {
	text := readPipelinePage(t)
	texts, rules := pageWants(t)
	shown := map[string]bool{} // "node bridge table priority"
	for where, lines := range pageDumps(text) {
		if texts[where] == nil {
			t.Errorf("the example has no rules on %s", where)
		}
		for _, line := range lines {
			said := ""
			if strings.HasPrefix(line, "group_id=") {
				g, err := flow.ParseGroup(line)
				if err != nil {
					t.Error(err)
					continue
				}
				said = g.String()
			} else {
				r, err := flow.ParseRule(line)
				if err != nil {
					t.Error(err)
					continue
				}
				said = r.String()
				shown[fmt.Sprint(where, r.Table, r.Priority)] = true
			}
			if !slices.Contains(texts[where], said) {
				t.Errorf("the page shows on %s\n\t%s\nwhich no handler computes", where, said)
			}
		}
	}
	for where, list := range rules {
		for _, r := range list {
			if !shown[fmt.Sprint(where, r.Table, r.Priority)] {
				t.Errorf("the page shows no rule of table %d with priority %d on %s, for example\n\t%s", r.Table, r.Priority, where, r)
			}
		}
	}
}

func TestRulesInTheReportsOfThePipelinePageAreRules(t *testing.T) {
	found := regexp.MustCompile(`"rule":"([^"]+)"`).FindAllStringSubmatch(readPipelinePage(t), -1)
	if len(found) == 0 {
		t.Error("the page shows no report of /kvnet/v1/flows")
	}
	for _, m := range found {
		if r, err := flow.ParseRule(m[1]); err != nil || r.String() != m[1] {
			t.Errorf("%s is read as %s: %v", m[1], r, err)
		}
	}
}

func TestTheTracesOfThePipelinePageMeetItsDumps(t *testing.T) {
	text := readPipelinePage(t)
	dumped := map[string]bool{}
	for _, m := range regexp.MustCompile(`cookie=(0x6b[0-9a-f]{14}),`).FindAllStringSubmatch(text, -1) {
		dumped[m[1]] = true
	}
	met := regexp.MustCompile(`cookie (0x[0-9a-f]+)`).FindAllStringSubmatch(text, -1)
	if len(met) < 20 {
		t.Errorf("the page's traces meet %d rules", len(met))
	}
	for _, m := range met {
		if !dumped[m[1]] {
			t.Errorf("a trace meets the rule %s, which no dump shows", m[1])
		}
	}
}

func TestThePipelinePageNamesTheTablesAndPrioritiesThatExist(t *testing.T) {
	text := readPipelinePage(t)
	source, err := os.ReadFile("../southbound/flow/pipeline.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	constants := regexp.MustCompile(`(?m)^\t((?:Table|Priority)\w+)\s+uint(?:8|16) = (\d+)\s+// ([A-Z_]+)?`).FindAllStringSubmatch(string(source), -1)
	if len(constants) < 20 {
		t.Fatalf("%d tables and priorities found in the source", len(constants))
	}
	for _, c := range constants {
		names[c[1]], names[c[3]] = true, true
		if row := regexp.MustCompile(`(?m)^\| ` + c[2] + ` \| .*` + "`" + c[1] + "`"); !row.MatchString(text) {
			t.Errorf("the page has no row for %s, %s", c[1], c[2])
		}
	}
	for _, m := range regexp.MustCompile("`((?:Table|Priority)[A-Z]\\w+|[A-Z_]+_TABLE|PRIORITY_[A-Z_]+)`").FindAllStringSubmatch(text, -1) {
		if !names[m[1]] {
			t.Errorf("the page names %s, which is nowhere in southbound/flow/pipeline.go", m[1])
		}
	}
}

func TestThePipelinePageRefersToWhatExists(t *testing.T) {
	text := readPipelinePage(t)
	deviations, err := os.ReadFile("../docs/deviations.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`row ([A-Z]-\w+)`).FindAllStringSubmatch(text, -1)
	if len(rows) < 10 {
		t.Errorf("the page names %d rows", len(rows))
	}
	for _, m := range rows {
		if !regexp.MustCompile(`(?m)^(\| ` + m[1] + ` \||Rows? ` + m[1] + ` )`).Match(deviations) {
			t.Errorf("the page names row %s, which is not in docs/deviations.md", m[1])
		}
	}
	for _, m := range regexp.MustCompile("`((?:docs|handlers|southbound)/[\\w/.]+)`").FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat("../" + m[1]); err != nil {
			t.Errorf("the page names a path that is not there: %v", err)
		}
	}
}
