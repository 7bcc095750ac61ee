package tests

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// everyHelp is the help of a command and of all that are listed there, by their words.
func everyHelp(t *testing.T, all map[string]string, words ...string) {
	t.Helper()
	help := says(t, append(slices.Clone(words), "--help")...)
	all[strings.Join(words, " ")] = help
	for _, name := range firstWords(section(help, "Commands")) {
		everyHelp(t, all, append(slices.Clone(words), name)...)
	}
}

func TestHelpOfEveryCommandHasASentenceAnExampleAndItsExitStatuses(t *testing.T) {
	t.Parallel()
	all := map[string]string{}
	everyHelp(t, all)
	everyHelp(t, all, "help")
	if len(all) < 35 {
		t.Errorf("only %d commands", len(all))
	}
	status := regexp.MustCompile(`^(\d+|\d+\+N|128\+N|N) +\S`)
	for command, help := range all {
		name := strings.TrimSpace("toolrun " + command)
		first, _, _ := strings.Cut(help, "\n\n")
		sentence, _, ok := strings.Cut(strings.ReplaceAll(first, "\n", " ")+" ", ". ")
		if !ok || len(strings.Fields(sentence)) < 3 || strings.ToUpper(sentence[:1]) != sentence[:1] {
			t.Errorf("%s: no sentence: %q", name, first)
		}
		examples := section(help, "Example")
		if len(examples) == 0 || !slices.ContainsFunc(examples, func(line string) bool { return strings.Contains(line, name) }) {
			t.Errorf("%s: no example: %v", name, examples)
		}
		var statuses []string
		for _, line := range section(help, "Exit status") {
			if status.MatchString(line) {
				statuses = append(statuses, strings.Fields(line)[0])
			}
		}
		if len(statuses) < 2 {
			t.Errorf("%s: no exit statuses: %v", name, section(help, "Exit status"))
		}
		if strings.Contains(command, " ") || command == "session" {
			if got := says(t, append([]string{"help"}, strings.Fields(command)...)...); got != help {
				t.Errorf("toolrun help %s says something else than %s --help", command, name)
			}
		}
		for line := range strings.Lines(help) {
			if n := columnsOf(strings.TrimSuffix(line, "\n")); n > 132 {
				t.Errorf("%s: a line of %d columns: %s", name, n, line)
			}
		}
	}
}

func TestUnknownCommandNamesTheNearestAndIsStatus2(t *testing.T) {
	t.Parallel()
	p := barePlace(t, "")
	for line, want := range map[string]string{
		"sesions":          `unknown command "sesions" for "toolrun"; did you mean "sessions"?`,
		"timelin":          `unknown command "timelin" for "toolrun"; did you mean "timeline"?`,
		"frobnicate":       `unknown command "frobnicate" for "toolrun"` + "\n",
		"help sqll":        `unknown command "sqll" for "toolrun"; did you mean "sql"?`,
		"archive lst":      `unknown command "lst" for "toolrun archive"; did you mean "list"?`,
		"help archive lst": `unknown command "lst" for "toolrun archive"; did you mean "list"?`,
		"catalog foo":      `unknown command "foo" for "toolrun catalog"`,
		"completion foo":   `name one shell of bash, zsh, fish, powershell`,
		"completion":       `name one shell of bash, zsh, fish, powershell`,
		"show":             `CALL is missing: it is 'toolrun show CALL'`,
		"catalog diff a":   `B is missing: it is 'toolrun catalog diff A B'`,
		"report x":         `1 argument given: it is 'toolrun report'`,
		"archive prune":    `say by --keep how old the months may be that stay whole, as in --keep 24mo`,
	} {
		got := p.query(strings.Fields(line)...)
		if got.code != 2 || got.stdout != "" || !strings.HasPrefix(got.stderr, "toolrun: "+want) || !strings.Contains(got.stderr, "--help'.\n") {
			t.Errorf("toolrun %s: %+v", line, got)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := p.query("completion", shell); got.code != 0 || !strings.Contains(got.stdout, "toolrun") {
			t.Errorf("completion %s: status %d %s", shell, got.code, got.stderr)
		}
	}
	if got := says(t, "__complete", "sess"); !strings.Contains(got, "sessions\t") || !strings.Contains(got, "session\t") {
		t.Errorf("completing sess: %s", got)
	}
}

func TestTheBeginningOfAnIDIsEnoughWhereNoOtherHasIt(t *testing.T) {
	t.Parallel()
	p := barePlace(t, "")
	p.damaged = true // rows only
	h := newPast(p)
	for i, session := range []string{"alpha", "alpine", "beta", "beta", "be"} {
		r := theRow(i)
		r.SessionID = session
		h.row(r)
	}
	for _, q := range [][]string{{"session"}, {"errors"}, {"cost"}, {"slow", "--over", "0s"}, {"timeline"}} {
		ask := func(session string) ran { return p.query(append(q, session)...) }
		if got, want := ask("alph"), ask("alpha"); got.code != 0 || got.stdout != want.stdout || got.stdout == "" {
			t.Errorf("%v alph: %+v\n%+v", q, got, want)
		}
		if got := ask("alp"); got.code != 1 || got.stdout != "" || got.stderr != "toolrun: several sessions begin with \"alp\", name one in full:\n  alpha\n  alpine\n" {
			t.Errorf("%v alp: %+v", q, got)
		}
		if got, want := ask("be"), p.query(append(q, "--session", "be")...); got.code != 0 || got != want {
			t.Errorf("%v be, which is one: %+v\n%+v", q, got, want)
		}
		if got := ask("gamma"); got.code != 1 || !strings.HasPrefix(got.stderr, `toolrun: no calls of session "gamma" in `) {
			t.Errorf("%v gamma: %+v", q, got)
		}
	}
	if got := p.query("session", "be", "--since", "2025-02-01"); got.code != 0 || got.stdout != "No calls.\n" {
		t.Errorf("a session without calls in a range: %+v", got)
	}
	if got := p.query("show", "call"); got.code != 1 || !strings.Contains(got.stderr, "several calls begin with \"call\", name one in full:\n  call0  say, 2025-01-15T10:00:00.000Z\n") {
		t.Errorf("show call: %+v", got)
	}
	if got := p.query("show", "call", "--session", "alpine"); got.code != 0 || !strings.HasPrefix(got.stdout, "call               call1\n") {
		t.Errorf("show call of one session: %+v", got)
	}
}
