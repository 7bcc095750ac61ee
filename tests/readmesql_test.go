package tests

import (
	"fmt"
	"regexp"
	"testing"
)

// The failures that README.md's own statement counts are those of the view, of every status that is one.
func TestFailureRatesOfTheReadmeAreThoseOfTheView(t *testing.T) {
	t.Parallel()
	statement := regexp.MustCompile(`toolrun sql "(SELECT tool_name, 100\.0 .*)"`).FindStringSubmatch(document(t, "README.md"))
	if statement == nil {
		t.Fatal("no statement")
	}
	x := tell(t, "claude", "honest-tests")
	statuses := []string{"success", "error", "timeout", "retry", "blocked"}
	x.more(t, len(statuses), func(i int, row object) { row["tool_name"], row["status"] = fmt.Sprint("tool", i/2), statuses[i] })
	own, status := x.toolrun(t, "sql", "--json", "SELECT tool_name, ROUND(percent, 1) AS percent FROM ("+statement[1]+") ORDER BY 1")
	view, _ := x.toolrun(t, "sql", "--json", "SELECT tool_name, error_percent AS percent FROM tool_failure_rates ORDER BY 1")
	if own != view || status != 0 {
		t.Errorf("status %d\n%s\nthe view:\n%s", status, own, view)
	}
}
