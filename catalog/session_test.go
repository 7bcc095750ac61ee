package catalog

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const shellText = `[tools.sh]
description = "A shell."
command = ["sh", ["-c", "{script}"]]
risk = "SEND"
mode = "session"
concurrency = 3
sandbox = { write = [] }
params.script = { type = "string" }
`

func TestAToolThatStaysStandsAsTheToolsThatDealWithIt(t *testing.T) {
	c := loadText(t, shellText)
	if got := c.Names(); !slices.Equal(got, []string{"sh_list", "sh_read", "sh_send", "sh_start", "sh_stop"}) {
		t.Fatalf("names %v", got)
	}
	for _, want := range []struct {
		verb, risk, approval, schema string
		program, readOnly, optional  bool
	}{
		{VerbStart, RiskSend, ApprovalAsk, `"script"`, true, false, false},
		{VerbSend, RiskSend, ApprovalAsk, `"input"`, false, false, true},
		{VerbRead, RiskRead, ApprovalAuto, `"pattern"`, false, true, true},
		{VerbStop, RiskDraft, ApprovalAuto, `"handle"`, false, false, true},
		{VerbList, RiskRead, ApprovalAuto, `{}`, false, true, true},
	} {
		tool, _ := c.Lookup("sh_" + want.verb)
		readOnly, _, _ := tool.Annotations()
		if tool.Verb != want.verb || tool.Base != "sh" || tool.Risk != want.risk || tool.Approval != want.approval || tool.Optional != want.optional ||
			!strings.Contains(string(tool.Schema), want.schema) || (tool.Program() != "") != want.program || readOnly != want.readOnly || tool.Description == "" {
			t.Errorf("%s: %+v", want.verb, tool)
		}
		if !strings.Contains(string(tool.Definition), `"mode":"session"`) || !strings.Contains(string(tool.Definition), `"verb":"`+want.verb+`"`) {
			t.Errorf("definition %s", tool.Definition)
		}
	}
	start, _ := c.Lookup("sh_start")
	if start.Timeout != time.Hour || start.Idle != 30*time.Minute || start.Concurrency != 3 {
		t.Errorf("timeout %v, idle %v, concurrency %d", start.Timeout, start.Idle, start.Concurrency)
	}
	send, _ := c.Lookup("sh_send")
	args, err := send.Check([]byte(`{"handle":"h","input":"ls"}`))
	if err != nil || args.Text(ArgInput) != "ls" || !args.Bool(ArgEnter) || args.Bool(ArgEOF) || args.Argv() != nil {
		t.Errorf("%+v %v", args, err)
	}
	for _, bad := range []string{`{}`, `{"handle":"h"}`, `{"handle":"","input":"x"}`, `{"handle":"h","input":"x","more":1}`, `{"handle":"h","input":"[REDACTED]"}`} {
		if _, err := send.Check([]byte(bad)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestWhatRunsInTheBackgroundIsPolled(t *testing.T) {
	c := loadText(t, strings.ReplaceAll(shellText, `"session"`, `"background"`))
	if got := c.Names(); !slices.Equal(got, []string{"sh_list", "sh_poll", "sh_start", "sh_stop"}) {
		t.Fatalf("names %v", got)
	}
	denied := loadText(t, strings.Replace(shellText, "sh]", "no]\napproval = \"deny\"", 1))
	for _, verb := range verbsOf(ModeSession) {
		if tool, _ := denied.Lookup("no_" + verb); tool == nil || tool.Approval != ApprovalDeny {
			t.Errorf("%s is not denied", verb)
		}
	}
}
