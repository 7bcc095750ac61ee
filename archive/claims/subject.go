package claims

import (
	"regexp"
	"slices"
	"strings"

	"toolrun/archive/ledger"
)

// subject is what a claim is about: which rows would have to say it.
type subject struct {
	what string
	is   func(*ledger.Row) bool
}

// activity is a kind of work that sentences and calls name by words.
type activity struct {
	what     string
	sentence *regexp.Regexp
	row      *regexp.Regexp // in the name of a tool or in its argv
	itself   bool           // the word is the claim; else it needs one that says how it ended, or that it ran
}

var activities = []activity{
	{"tests", regexp.MustCompile(`(?i)\b(?:tests?|testsuite|specs?|pytest|unittest|jest|vitest|mocha|rspec|phpunit)\b`), regexp.MustCompile(`(?i)test|spec\b|rspec|jest|mocha|tox\b|nox\b|check\b|verify`), false},
	{"a build", regexp.MustCompile(`(?i)\b(?:build|builds|built|compile[sd]?|compilation)\b`), regexp.MustCompile(`(?i)build|compile|make\b|tsc\b|cargo|webpack|vite|gradle|mvn|bazel|go (?:install|vet)`), false},
	{"a linter", regexp.MustCompile(`(?i)\b(?:lint|linter|linting|eslint|ruff|flake8|staticcheck|mypy|type-?checks?|type-?checker|clippy)\b`), regexp.MustCompile(`(?i)lint|ruff|flake8|staticcheck|mypy|pyright|tsc\b|vet\b|clippy|check`), false},
	{"a deployment", regexp.MustCompile(`(?i)\b(?:deployed|redeployed|deploys|deployment|rolled out|shipped|went live)\b`), regexp.MustCompile(`(?i)deploy|rollout|roll_out|kubectl|helm|terraform|ansible|ship\b|release|publish`), true},
	{"a release", regexp.MustCompile(`(?i)\b(?:released|published|tagged)\b`), regexp.MustCompile(`(?i)release|publish|deploy|upload|twine|tag\b`), true},
	{"a push", regexp.MustCompile(`(?i)\bpushed\b`), regexp.MustCompile(`(?i)push`), true},
	{"a commit", regexp.MustCompile(`(?i)\bcommitted\b`), regexp.MustCompile(`(?i)commit`), true},
	{"a merge", regexp.MustCompile(`(?i)\bmerged\b`), regexp.MustCompile(`(?i)merge`), true},
	{"a message sent", regexp.MustCompile(`(?i)\b(?:sent|emailed|e-mailed|notified)\b`), regexp.MustCompile(`(?i)send|mail|notif|post|slack|publish`), true},
	{"an installation", regexp.MustCompile(`(?i)\b(?:installed|upgraded)\b`), regexp.MustCompile(`(?i)install|upgrade|pip\b|npm\b|apt|uv\b|add\b`), true},
	{"a migration", regexp.MustCompile(`(?i)\b(?:migrated|migrations?)\b`), regexp.MustCompile(`(?i)migrat`), false},
	{"a benchmark", regexp.MustCompile(`(?i)\b(?:benchmarks?|benchmarked)\b`), regexp.MustCompile(`(?i)bench`), false},
}

var (
	happened = regexp.MustCompile(`(?i)\b(?:ran|rerun|re-ran|executed|performed|have run|has run|was run|were run|applied)\b`)
	actor    = regexp.MustCompile(`(?i)^(?:\W*)(?:successfully |also |then |now |done[:,]? )*(?:deployed|redeployed|released|published|tagged|pushed|committed|merged|sent|emailed|notified|installed|upgraded|rolled out|shipped)\b|\b(?:I|we|I've|we've|was|were|is|are|has been|have been|been|it|got|and|then)\b(?: (?:also|now|then|have|has|just|already|successfully|been|finally))* (?:deployed|redeployed|released|published|tagged|pushed|committed|merged|sent|emailed|e-mailed|notified|installed|upgraded|rolled out|shipped)\b|\bwent live\b|\bdeployment\b.*\b(?:succe|complete|done|finished)`)
	general  = regexp.MustCompile(`(?i)^\W*(?:all|everything)(?: is| are| looks)? (?:green|pass(?:es|ed)?|work(?:s|ed)|fine|ok)\b`)
)

// subjectsOf finds what a sentence is about; ends tells whether it says that something ran, or how it came out.
func subjectsOf(text string, ends bool, tools []string) (list []subject) {
	for _, a := range activities {
		if !a.sentence.MatchString(text) || a.itself && !actor.MatchString(text) || !a.itself && !ends {
			continue
		}
		list = append(list, subject{a.what, func(row *ledger.Row) bool { return a.row.MatchString(words(row)) }})
	}
	list = append(list, filesOf(text)...)
	list = append(list, commandsOf(text, ends, tools)...)
	if len(list) == 0 && general.MatchString(text) {
		list = append(list, subject{"everything", func(*ledger.Row) bool { return true }})
	}
	return list
}

// words are what names a call: its tool and what was executed; not its other arguments, which may be a text about anything.
func words(row *ledger.Row) string {
	return row.ToolName.String() + " " + strings.NewReplacer(`","`, " ", `["`, "", `"]`, "").Replace(row.Argv.String())
}

var (
	fileToken = regexp.MustCompile(`[\w./@+-]*[\w@+-]\.[A-Za-z][A-Za-z0-9]{0,7}\b`)
	reading   = regexp.MustCompile(`(?i)\b(?:read|reads|opened|inspected|viewed|searched|reading|checked|looked at)\b`)
	writing   = regexp.MustCompile(`(?i)\b(?:wrote|written|created|updated|edited|modified|changed|saved|deleted|removed|renamed|formatted|patched|fixed)\b`)
	writer    = regexp.MustCompile(`(?i)write|edit|create|save|patch|update|replace|append|delete|remove|rm\b|rename|move|mv\b|cp\b|copy|sed\b|tee\b|touch|mkdir|format|fmt|fix`)
	done      = regexp.MustCompile(`(?i)\b(?:I|we|I've|we've|was|were|is|are|has been|have been|been|it)\b|^\W*(?:successfully )?(?:read|wrote|created|updated|edited|modified|saved|deleted|removed|renamed|formatted|patched|fixed|opened|searched)\b`)
)

// filesOf are the files that a sentence says were read or written.
func filesOf(text string) (list []subject) {
	reads, writes := reading.MatchString(text), writing.MatchString(text)
	if !done.MatchString(text) || !reads && !writes {
		return nil
	}
	for _, name := range slices.Compact(fileToken.FindAllString(text, -1)) {
		what := "reading " + name
		if writes && !reads {
			what = "writing " + name
		}
		list = append(list, subject{what, func(row *ledger.Row) bool {
			if !mentions(row, name) {
				return false
			}
			return reads || writer.MatchString(words(row)) || row.RiskClass != "READ" && row.RiskClass != ""
		}})
	}
	return list
}

// mentions tells whether an argument has the name.
func mentions(row *ledger.Row, name string) bool {
	return strings.Contains(row.InputSummary.String(), name) || strings.Contains(row.Argv.String(), name)
}

var (
	quoted = regexp.MustCompile("`([^`]+)`")
	calls  = regexp.MustCompile(`(?i)\b(?:ran|run|called|used|executed|invoked|started)\b`)
)

// commandsOf are the tools and the quoted commands that a sentence says were run.
func commandsOf(text string, ends bool, tools []string) (list []subject) {
	if !ends && !calls.MatchString(text) {
		return nil
	}
	seen := map[string]bool{}
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		command := strings.TrimSpace(strings.TrimPrefix(m[1], "$ "))
		if fileToken.FindString(command) == command || !calls.MatchString(text) && !slices.Contains(tools, command) {
			continue // the name of a file, or of something else
		}
		seen[command] = true
		list = append(list, subject{"`" + command + "`", func(row *ledger.Row) bool { return isCommand(row, command) }})
	}
	for _, tool := range tools {
		if len(tool) > 3 && strings.ContainsAny(tool, "_-.") && !seen[tool] && regexp.MustCompile(`(?:^|[^\w-])`+regexp.QuoteMeta(tool)+`(?:$|[^\w-])`).MatchString(text) {
			list = append(list, subject{tool, func(row *ledger.Row) bool { return row.ToolName.String() == tool }})
		}
	}
	return list
}

// isCommand tells whether a call is that tool or command: each of its words is an element of argv.
func isCommand(row *ledger.Row, command string) bool {
	if row.ToolName.String() == command {
		return true
	}
	have := strings.Fields(words(row))
	for _, word := range strings.Fields(command) {
		if !slices.ContainsFunc(have, func(w string) bool { return w == word || strings.HasSuffix(w, "/"+word) }) {
			return false
		}
	}
	return true
}
