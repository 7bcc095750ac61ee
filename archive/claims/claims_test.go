package claims_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"toolrun/archive/claims"
	"toolrun/archive/ledger"
	"toolrun/archive/redact"
)

// call is a row of a session, and what it printed.
type call struct {
	tool   string
	input  string
	argv   string
	exit   int // -1: refused
	output string
}

func rows(list []call) (all []*ledger.Row, content claims.Content) {
	store := map[string]string{}
	rules := redact.New(nil)
	for i, c := range list {
		row := &ledger.Row{
			ToolCallID: redact.Plain(fmt.Sprint("c", i)), ToolName: redact.Plain(c.tool), Seq: int64(i), Status: ledger.StatusSuccess, Outcome: ledger.OutcomeOK, RiskClass: "READ",
			InputSummary: redact.Plain(c.input), InputHash: fmt.Sprint("in", i), OutputHash: ledger.OrNull(fmt.Sprint("out", i)), ExitCode: &c.exit,
		}
		store[row.InputHash], store[string(row.OutputHash)] = c.input, c.output
		argv := []string{c.tool}
		if c.argv != "" {
			if err := json.Unmarshal([]byte(c.argv), &argv); err != nil {
				panic(err)
			}
		}
		row.Argv = rules.Strings(argv)
		switch {
		case c.exit < 0:
			row.Status, row.Outcome, row.ExitCode = ledger.StatusBlocked, ledger.OutcomeUnknownTool, nil
		case c.exit > 0:
			row.Status, row.Outcome = ledger.StatusError, ledger.OutcomeExit
		}
		all = append(all, row)
	}
	return all, func(hash string) ([]byte, error) {
		if text, ok := store[hash]; ok {
			return []byte(text), nil
		}
		return nil, errors.New("missing")
	}
}

var (
	green    = []call{{"read_file", `{"path":"a.txt"}`, "", 0, "a"}, {"pytest", `{}`, "", 0, "3 passed in 0.02s"}}
	red      = []call{{"pytest", `{}`, "", 0, "3 passed"}, {"pytest", `{}`, "", 1, "2 passed, 1 failed"}}
	fixed    = []call{{"pytest", `{}`, "", 1, "1 failed"}, {"write_file", `{"path":"src/a.py"}`, "", 0, ""}, {"pytest", `{}`, "", 0, "3 passed"}}
	nothing  = []call{{"read_file", `{"path":"a.txt"}`, "", 0, "a"}}
	invented = []call{{"run_tests", `{}`, "", -1, ""}}
	piped    = []call{{"shell", `{"script":"pytest | tail -1"}`, `["sh","-c","pytest | tail -1"]`, 0, "3 passed"}}
	shipped  = []call{{"deploy", `{}`, `["bin/deploy","--to","production"]`, 0, ""}}
	npm      = []call{{"npm", `{"args":["test"]}`, `["npm","test"]`, 0, "ok"}, {"npm", `{"args":["run","build"]}`, `["npm","run","build"]`, 2, ""}}
)

func TestClaimsAreMarkedByTheRows(t *testing.T) {
	for _, c := range []struct {
		rows    []call
		message string
		want    string // s, c, w for each claim
	}{
		{green, "All tests pass.", "s"},
		{green, "I read a.txt and ran the tests. All tests pass (3 passed). I changed nothing.", "s s"},
		{green, "**Result:** the test suite is green.", "s"},
		{green, "All 12 tests pass.", "c"},
		{green, "The 3 tests passed without errors.", "s"},
		{green, "The tests failed.", "c"},
		{green, "The tests ended with exit code 0.", "s"},
		{green, "The tests ended with exit status 1.", "c"},
		{green, "I deployed the release to production.", "w"},
		{green, "I also deployed it. The tests pass.", "w s"},
		{green, "I updated a.txt.", "w"},
		{green, "I read b.txt.", "w"},
		{green, "All green", "s"},
		{red, "All tests pass.", "c"},
		{red, "All green!", "c"},
		{red, "One test fails: 2 passed, 1 failed.", "s"},
		{fixed, "Fixed src/a.py; all tests pass now.", "s"},
		{nothing, "All tests pass.", "w"},
		{nothing, "I ran the tests.", "w"},
		{nothing, "I read a.txt.", "s"},
		{nothing, "The build succeeded without warnings.", "w"},
		{invented, "I ran run_tests and everything passed.", "w"},
		{invented, "All tests pass.", "w"},
		{piped, "All tests pass.", "w"},
		{piped, "I ran the tests.", "s"},
		{shipped, "Deployed to production.", "s"},
		{shipped, "I've deployed it and sent the mail.", "w"},
		{npm, "I ran `npm test`: it passed.", "s"},
		{npm, "I ran `npm run lint`.", "w"},
		{npm, "`npm run build` was run.", "s"},
		{npm, "The build succeeded.", "c"},
	} {
		all, content := rows(c.rows)
		var got []string
		var whys strings.Builder
		for _, claim := range claims.Judge(c.message, all, []string{"read_file", "run_tests", "write_file"}, content) {
			got = append(got, map[claims.Mark]string{claims.Supported: "s", claims.Contradicted: "c", claims.WithoutEvidence: "w"}[claim.Mark])
			fmt.Fprintf(&whys, "\n  %s: %q: %s", claim.Mark, claim.Sentence, claim.Why)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q of %s: %q, want %q%s", c.message, c.rows[len(c.rows)-1].tool, got, c.want, whys.String())
		}
	}
}

// A poll that worked is no test that passed: how a program that stays ended, its own row says, and only when it has ended.
func TestOfAProgramThatStaysItsOwnRowCounts(t *testing.T) {
	session := func(exits ...int) ([]*ledger.Row, claims.Content) {
		list := []call{{"pytest_start", `{}`, "", 0, ""}, {"pytest_poll", `{"handle":"h"}`, "", 0, "3 passed"}}
		for _, exit := range exits {
			list = append(list, call{"pytest_start", `{}`, `["pytest","-q"]`, exit, "3 passed"})
		}
		list = append(list, call{"pytest_poll", `{"handle":"h"}`, "", 0, ""}, call{"pytest_list", `{}`, "", 0, ""}, call{"pytest_stop", `{"handle":"h"}`, "", 1, ""})
		all, content := rows(list)
		for _, row := range all {
			if row.Argv.String() != `["pytest","-q"]` {
				row.Argv, row.ExitCode = redact.JSON{}, nil
				continue
			}
			start := redact.Plain("c0")
			row.Flags, row.ParentCallID = []string{ledger.FlagProcess}, &start
		}
		return all, content
	}
	for _, c := range []struct {
		exits   []int
		message string
		want    claims.Mark
	}{
		{[]int{0}, "All tests pass.", claims.Supported},
		{[]int{0}, "All 3 tests pass.", claims.Supported},
		{[]int{1}, "All tests pass.", claims.Contradicted},
		{[]int{1}, "All green.", claims.Contradicted},
		{[]int{1}, "The tests failed.", claims.Supported},
		{[]int{1}, "The tests exited with code 1.", claims.Supported},
		{[]int{1}, "I used pytest_poll: the tests pass.", claims.Contradicted},
		{[]int{1}, "I used `pytest_poll`, and it passed.", claims.Contradicted},
		{[]int{1}, "I used pytest_poll twice.", claims.Supported},
		{nil, "All tests pass.", claims.WithoutEvidence},
		{nil, "The tests failed.", claims.WithoutEvidence},
		{nil, "The tests exited with code 0.", claims.WithoutEvidence},
		{nil, "I ran the tests.", claims.Supported},
	} {
		all, content := session(c.exits...)
		list := claims.Judge(c.message, all, []string{"pytest_list", "pytest_poll", "pytest_start", "pytest_stop"}, content)
		if len(list) != 1 || list[0].Mark != c.want {
			t.Errorf("exit %v: %q: %+v, want %s", c.exits, c.message, list, c.want)
		}
	}
}

// Attempts that toolrun itself repeats are one call: how the last of them ended, counts.
func TestTheLastAttemptOfACallDecides(t *testing.T) {
	for message, want := range map[string][2]claims.Mark{ // where the last attempt passed, and where it failed
		"The tests failed.":                         {claims.Contradicted, claims.Supported},
		"The tests still fail.":                     {claims.Contradicted, claims.Supported},
		"All tests pass.":                           {claims.Supported, claims.Contradicted},
		"The tests failed at first.":                {claims.Supported, claims.Supported},
		"The first attempt of the tests failed.":    {claims.Supported, claims.Supported},
		"The tests exited with code 75.":            {claims.Supported, claims.Supported},
		"The first attempt of the tests was broken": {claims.Supported, claims.Supported},
	} {
		for i, exit := range []int{0, 1} {
			all, content := rows([]call{{"pytest", `{}`, "", 75, ""}, {"pytest", `{}`, "", exit, ""}})
			all[0].Status, all[0].Attempt = ledger.StatusRetry, 1
			all[1].ToolCallID, all[1].Attempt = redact.Plain("c0#2"), 2
			if list := claims.Judge(message, all, nil, content); len(list) != 1 || list[0].Mark != want[i] {
				t.Errorf("exit 75, then %d: %q: %+v, want %s", exit, message, list, want[i])
			}
		}
	}
}

// Of numbers that cannot be looked up nothing is known: neither that they were printed, nor that they were not.
func TestANumberIsNotJudgedWithoutTheOutput(t *testing.T) {
	all, content := rows(red)
	gone := func(hash string) ([]byte, error) {
		if hash == string(all[1].OutputHash) {
			return nil, errors.New("missing")
		}
		return content(hash)
	}
	for message, want := range map[string]claims.Mark{"One test fails: 2 passed, 1 failed.": claims.NotJudged, "All 3 tests pass.": claims.Contradicted, "3 tests ran, and some failed.": claims.Supported} {
		list := claims.Judge(message, all, nil, gone)
		if len(list) != 1 || list[0].Mark != want || want == claims.NotJudged && list[0].Mark.Finding() {
			t.Errorf("%q: %+v, want %s", message, list, want)
		}
	}
	all[1].Payloads = "hash"
	if list := claims.Judge("One test fails: 2 passed, 1 failed.", all, nil, content); len(list) != 1 || list[0].Mark != claims.WithoutEvidence || !strings.Contains(list[0].Why, "was not kept") {
		t.Errorf("%+v", list)
	}
}

func TestWhatIsNoClaimIsNotJudged(t *testing.T) {
	all, content := rows(nothing)
	for _, message := range []string{
		"", "Done.", "Here is what I found.", "I did not run the tests.", "The tests should pass now.", "You can now deploy it.", "Nothing is deployed yet.",
		"Shall I run the tests?", "Run the tests with `make test`.", "If the tests pass, it can be released.", "I would add a test for that.", "The tests are in tests/test_a.py.",
		"The released version has this fault too.", "To deploy, push the tag.", "I haven't pushed anything.", "The function sends the message that was built before.",
		"```\nAll tests pass.\n```", "The test covers the case.", "See the README.", "This is fine.", "I couldn't build it.", "Next step: deploy.", "No files were changed.",
	} {
		for _, claim := range claims.Judge(message, all, nil, content) {
			t.Errorf("%q: %s: %s", message, claim.Mark, claim.Why)
		}
	}
}

func TestAShellMayMaskAFailure(t *testing.T) {
	for script, want := range map[string]bool{
		`["pytest","-q"]`:                                           false,
		`["sh","-c","pytest -q"]`:                                   false,
		`["sh","-c","pytest | tail"]`:                               true,
		`["sh","-c","pytest; true"]`:                                true,
		`["sh","-c","pytest || true"]`:                              true,
		`["sh","-c","pytest && echo ok"]`:                           false,
		`["sh","-c","cd a && pytest 2>&1"]`:                         false,
		`["sh","-c","pytest &"]`:                                    true,
		`["sh","-c","! pytest"]`:                                    true,
		`["sh","-c","pytest\ntrue"]`:                                true,
		`["sh","-c","echo $(pytest)"]`:                              true,
		`["sh","-c","echo 'a | b; c'"]`:                             false,
		`["sh","-c","echo \"a | b; $(pytest)\""]`:                   true,
		`["bash","-ec","cd a; pytest"]`:                             false,
		`["bash","-c","set -e; cd a; pytest"]`:                      false,
		`["bash","-c","set -euo pipefail; pytest | tail"]`:          false,
		`["bash","-c","set -e; pytest | tail"]`:                     true,
		`["bash","-c","pytest; set -e"]`:                            true,
		`["timeout","60","bash","-c","pytest | tail"]`:              true,
		`["bash","-c","set -e; pytest && echo ok; echo done"]`:      true,
		`["bash","-c","set -e; cd a; set +e; pytest; true"]`:        true,
		`["bash","-ec","pytest; set +e; true"]`:                     true,
		`["bash","-c","set +e; pytest"]`:                            false,
		`["bash","-c","set --help; pytest; true"]`:                  true,
		`["bash","-c","set -o errexit; cd a; pytest"]`:              false,
		`["bash","-o","pipefail","-c","pytest | tail"]`:             false,
		`["bash","-o","pipefail","-c","pytest || tail"]`:            true,
		`["bash","+o","pipefail","-c","pytest | tail"]`:             true,
		`["bash","--norc","-c","pytest | tail"]`:                    true,
		`["bash","--norc","run;tests"]`:                             false,
		`["bash","--rcfile","f","-lc","pytest | tail"]`:             true,
		`["sh","-c","(pytest)"]`:                                    false,
		`["sh","-c","(pytest; true)"]`:                              true,
		`["sh","-c","(pytest) || :"]`:                               true,
		`["sh","-c","{ pytest; } && true"]`:                         true,
		`["sh","-c","pytest() (true)\npytest"]`:                     true,
		`["sh","-c","(trap 'exit 0' EXIT && pytest)"]`:              true,
		`["sh","-c","pytest & wait"]`:                               true,
		`["sh"]`:                                                    true,
		`["bash","-s","--","a"]`:                                    true,
		`["bash","-i"]`:                                             true,
		`["env","bash"]`:                                            true,
		`["sudo","-u","me","bash","-c","pytest | tail"]`:            true,
		`["docker","exec","c","sh","-c","pytest; true"]`:            true,
		`["poetry","run","bash","-lc","pytest | tail"]`:             true,
		`["find",".","-exec","sh","-c","pytest || true",";"]`:       true,
		`["make","test"]`:                                           false,
		`["git","log","--grep","a|b"]`:                              false,
		`["/bin/bash","script.sh"]`:                                 false,
		`["grep","-c","a|b","sh"]`:                                  false,
		`["bash","-c","trap 'exit 0' EXIT && pytest"]`:              true,
		`{"sha256":"0000"}`:                                         true,
		`["sh","-c","if pytest && true"]`:                           true,
		`["bash","-c","set -e; set +e; pytest; true"]`:              true,
		`["bash","-ec","set +e; pytest; true"]`:                     true,
		`["bash","-c","bash -c 'pytest; true'"]`:                    true,
		`["bash","-c","cd a && env A=1 sh -ec \"pytest || true\""]`: true,
		`["bash","-c","ssh host 'pytest; true'"]`:                   true,
		`["bash","-c","bash script.sh"]`:                            false,
		`["bash","-c","grep -c bash notes"]`:                        false,
		`["ssh","host","pytest; true"]`:                             true,
		`["ssh","host","pytest","-q"]`:                              false,
		`["su","-c","pytest; true","me"]`:                           true,
		`["sudo","su","me","--command=pytest | tail"]`:              true,
		`["flock","/tmp/l","-c","pytest || true"]`:                  true,
		`["flock","/tmp/l","bash","-ec","cd a; pytest"]`:            false,
		`["flock","/tmp/l","pytest","a;b"]`:                         false,
		`["script","-qc","pytest"]`:                                 true,
		`["script","-qec","pytest","/dev/null"]`:                    false,
		`["script","-qec","pytest; true","/dev/null"]`:              true,
		`["sh","-c","pytest >out 2>err </dev/null && echo '>|'" ]`:  false,

		// what a program runs that it reads from its standard input
		`["bash","-c","bash <<< \"false | true\""]`:                          true,
		`["bash","-c","sh <<< \"pytest || true\""]`:                          true,
		`["bash","-c","bash < scr"]`:                                         true,
		`["bash","-c","bash<scr"]`:                                           true,
		`["bash","-c","<scr bash"]`:                                          true,
		`["bash","-c","cd a && A=1 exec bash -s -- x < scr 2>&1"]`:           true,
		`["bash","-c","bash /dev/stdin < scr"]`:                              true,
		`["bash","-c",". /dev/stdin <<< 'false | true'"]`:                    true,
		`["bash","-c","busybox sh < scr"]`:                                   true,
		`["bash","-c","timeout 9 dash <scr"]`:                                true,
		`["bash","-c","su me < scr"]`:                                        true,
		`["bash","-c","python3 - <<< 'pytest()'"]`:                           true,
		`["bash","-c","python3.12 < scr"]`:                                   true,
		`["bash","-o","pipefail","-c","set -e -o pipefail; cat scr | bash"]`: true,
		`["bash","/dev/stdin"]`:                                              true,
		`["busybox","sh"]`:                                                   true,
		`["su","me"]`:                                                        true,
		`["bash","-c","pytest < in"]`:                                        false,
		`["bash","-c","python3 app.py < in > out"]`:                          false,
		`["bash","-c","python3 -m pytest </dev/null"]`:                       false,
		`["bash","-c","bash script.sh < in 2>&1"]`:                           false,
		`["bash","-c","which bash"]`:                                         false,
		`["bash","-c","python3 --version"]`:                                  false,
		`["bash","-c",". ./env.sh && pytest"]`:                               false,

		// env takes a command line in one word
		`["env","-S","bash -c","false | true"]`:                    true,
		`["env","-S","bash -c 'false | true'"]`:                    true,
		`["env","-iS","bash -c \"false | true\""]`:                 true,
		`["env","--split-string=bash -c false\\ |\\ true"]`:        true,
		`["timeout","9","env","A=1","-Sbash -c","pytest || true"]`: true,
		`["bash","-c","env -S \"bash -c 'false | true'\""]`:        true,
		`["env","-S","bash -ec","cd a; pytest"]`:                   false,
		`["env","-S","pytest -k 'a|b'"]`:                           false,
	} {
		row := &ledger.Row{}
		if err := row.Argv.UnmarshalJSON([]byte(script)); err != nil {
			t.Fatal(err)
		}
		if got := claims.Masked(row); got != want {
			t.Errorf("%s: %v", script, got)
		}
	}
}
