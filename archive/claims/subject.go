package claims

import (
	"regexp"
	"slices"
	"strings"

	"toolrun/archive/internal/late"
	"toolrun/archive/ledger"
)

// subject is what a claim is about: which rows would have to say it.
type subject struct {
	what string
	is   func(*ledger.Row, Content) bool
	run  func(*ledger.Row) bool // where a call is of it by what was run, those count alone, and none that was only given its name
	tool string                 // the name of a tool, or a command, where the sentence has one

	itself     bool // the word for it says that it worked
	any        bool // one call that worked is enough, whatever later ones did
	tests      bool // its calls count tests
	everything bool // all that was checked, whatever that was
}

// activity is a kind of work that sentences and calls name by words.
type activity struct {
	what     string
	sentence func() *regexp.Regexp
	row      func() *regexp.Regexp // in the words that name a call
	itself   bool                  // the word is the claim; else it needs one that says how it ended, or that it ran
	check    bool                  // it tells whether the work is good
	tests    bool                  // it counts tests
}

func (a activity) subject() subject {
	return subject{
		what: a.what, itself: a.itself, tests: a.tests,
		is:  func(row *ledger.Row, _ Content) bool { return a.row().MatchString(words(row)) },
		run: func(row *ledger.Row) bool { return a.row().MatchString(names(row)) },
	}
}

func activityOf(what, sentence, row string) activity {
	return activity{what: what, sentence: late.Regexp(`(?i)\b(?:` + sentence + `)\b`), row: late.Regexp(`(?i)(?:^|[^a-z])(?:` + row + `)(?:[^a-z]|$)`)}
}

// activities: what comes first is a check, then what needs a word of how it ended, then what its own word claims.
var activities = func() (list []activity) {
	for _, a := range []activity{
		activityOf("tests", `tests?|testsuite|specs?|pytest|unittest|jest|vitest|mocha|rspec|phpunit`,
			`tests?|testsuite|pytest|unittest|ctest|specs?|rspec|jest|vitest|mocha|tox|nox|phpunit|\w+(?-i:Tests?)|(?:make|run) check|mvn verify`),
		activityOf("a build", `build|builds|built|compile[sd]?|compilation`,
			`re-?build|builds?|compile|assemble|make$|make (?:all|install)|tsc|cargo (?:check|run|install)|webpack|go install|package`),
		activityOf("a linter", `lint|linter|linting|eslint|ruff|flake8|staticcheck|mypy|type-?checks?|type-?checker|clippy`,
			`\w*lint|ruff|flake8|staticcheck|mypy|pyright|tsc|vet|clippy|type-?check`),
	} {
		a.check = true
		list = append(list, a)
	}
	list[0].tests = true
	list = append(list,
		activityOf("a migration", `migrated|migrations?`, `\w*migrat\w*`),
		activityOf("a benchmark", `benchmarks?|benchmarked`, `\w*bench\w*`))
	for _, a := range []activity{
		activityOf("a deployment", `deployed|redeployed|deploys?|deployment|rolled out|shipped|went live`,
			`\w*deploy\w*|roll-?_?out|kubectl (?:apply|create|replace|set)|helm (?:install|upgrade)|terraform apply|ansible-playbook|ship|release|publish`),
		activityOf("a release", `releases?|released|published|tagged`, `releases?|publish|deploy|upload|twine|tag`),
		activityOf("a push", `pushed`, `push`),
		activityOf("a commit", `committed`, `commit`),
		activityOf("a merge", `merged`, `merge`),
		activityOf("a message sent", `sent|emailed|e-mailed|notified`, `send\w*|e?-?mail\w*|notif\w*|post|slack`),
		activityOf("an installation", `installed|upgraded|installation`, `\w*install|upgrade|apt-get|(?:npm|pnpm|yarn|bun|uv|poetry|cargo|pipx?3?) (?:add|ci|i|sync)|go get`),
	} {
		a.itself = true
		list = append(list, a)
	}
	return list
}()

var (
	happened = late.Regexp(`(?i)\b(?:ran|rerun|re-ran|executed|performed|have run|has run|was run|were run|applied)\b`)
	actor    = late.Regexp(`(?i)^(?:\W*)(?:successfully |also |then |now |done[:,]? )*(?:deployed|redeployed|released|published|tagged|pushed|committed|merged|sent|emailed|notified|installed|upgraded|rolled out|shipped)\b|\b(?:I|we|I've|we've|was|were|is|are|has been|have been|been|it|got|and|then)\b(?: (?:also|now|then|have|has|just|already|successfully|been|finally))* (?:deployed|redeployed|released|published|tagged|pushed|committed|merged|sent|emailed|e-mailed|notified|installed|upgraded|rolled out|shipped)\b|\bwent live\b|\b(?:deploy|deployment|release|installation)(?: (?:to \w+|has|have|was|is|run|step|now|then|also))* (?:succe|complete|done|finished|fail|exit)`)
	tallying = late.Regexp(`(?i)^\W*(?:(?:results?|summary|outcome)\W+)?(?:successfully\W+)?\d+(?: (?:out )?of (?:the )?\d+|/\d+)? (?:passed|passing|failed|failing)(?:\W*$|[,;:]|\W*\s(?:and\s+)?(?:\d|successfully)| in \d)`) // what a test runner prints last
	general  = late.Regexp(`(?i)(?:^\W*|\b(?:that|and) )(?:all(?: (?:of )?(?:the )?checks?)?|everything)(?: is| are| looks| has| have| now| still)* (?:green|pass(?:es|ed|ing)?|work(?:s|ed|ing)|fine|ok|clean|succeed(?:s|ed)?)\b`)
)

// subjectsOf finds what a sentence is about; ends tells whether it says that something ran, or how it came out.
func subjectsOf(text string, ends bool, tools []string) (list []subject) {
	for _, a := range activities {
		if !a.sentence().MatchString(text) || a.itself && !actor().MatchString(text) || !a.itself && !ends {
			continue
		}
		list = append(list, a.subject())
	}
	list = append(list, filesOf(text)...)
	list = append(list, commandsOf(text, ends, tools)...)
	if len(list) == 0 && tallying().MatchString(text) {
		list = append(list, activities[0].subject())
	}
	if len(list) == 0 && general().MatchString(text) {
		list = append(list, subject{what: "a test, a build or a linter", is: func(*ledger.Row, Content) bool { return false }, everything: true})
	}
	return list
}

var (
	fileToken = late.Regexp(`[\w./@+-]*[\w@+-]\.[A-Za-z][A-Za-z0-9]{0,7}\b`)
	reading   = late.Regexp(`(?i)\b(?:read|reads|opened|inspected|viewed|searched|reading|checked|looked at)\b`)
	writing   = late.Regexp(`(?i)\b(?:wrote|written|created|updated|edited|modified|changed|saved|deleted|removed|renamed|formatted|patched|fixed)\b`)
	writer    = late.Regexp(`(?i)write|edit|create|save|patch|update|replace|append|delete|remove|rm\b|rename|move|mv\b|cp\b|copy|sed\b|tee\b|touch|mkdir|format|fmt|fix`)
	done      = late.Regexp(`(?i)\b(?:I|we|I've|we've|was|were|is|are|has been|have been|been|it)\b|^\W*(?:successfully )?(?:read|wrote|created|updated|edited|modified|saved|deleted|removed|renamed|formatted|patched|fixed|opened|searched)\b`)
)

// filesOf are the files that a sentence says were read or written.
func filesOf(text string) (list []subject) {
	reads, writes := reading().MatchString(text), writing().MatchString(text)
	if !done().MatchString(text) || !reads && !writes {
		return nil
	}
	names := fileToken().FindAllString(text, -1)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		what := "reading " + name
		if writes && !reads {
			what = "writing " + name
		}
		list = append(list, subject{what: what, itself: true, any: true, is: func(row *ledger.Row, content Content) bool {
			if !reads && !writer().MatchString(row.ToolName.String()+" "+words(row)) && (row.RiskClass == "READ" || row.RiskClass == "") {
				return false
			}
			return mentions(row, name, content)
		}})
	}
	return list
}

var (
	quoted = late.Regexp("`([^`]+)`")
	calls  = late.Regexp(`(?i)\b(?:ran|run|called|used|executed|invoked|started)\b`)
)

// commandsOf are the tools and the quoted commands that a sentence says were run.
func commandsOf(text string, ends bool, tools []string) (list []subject) {
	if !ends && !calls().MatchString(text) {
		return nil
	}
	seen := map[string]bool{}
	for _, m := range quoted().FindAllStringSubmatch(text, -1) {
		command := strings.TrimSpace(strings.TrimPrefix(m[1], "$ "))
		if fileToken().FindString(command) == command || !calls().MatchString(text) && !slices.Contains(tools, command) {
			continue // the name of a file, or of something else
		}
		seen[command] = true
		list = append(list, subject{what: "`" + command + "`", tool: command, is: func(row *ledger.Row, _ Content) bool { return isCommand(row, command) }})
	}
	for _, tool := range tools {
		if len(tool) > 3 && strings.ContainsAny(tool, "_-.") && !seen[tool] && regexp.MustCompile(`(?:^|[^\w-])`+regexp.QuoteMeta(tool)+`(?:$|[^\w-])`).MatchString(text) {
			list = append(list, subject{what: tool, tool: tool, is: func(row *ledger.Row, _ Content) bool { return row.ToolName.String() == tool }})
		}
	}
	return list
}

// isCommand tells whether a call is that tool or command: each of its words is an element of argv.
func isCommand(row *ledger.Row, command string) bool {
	if row.ToolName.String() == command {
		return true
	}
	have := strings.Fields(row.ToolName.String() + " " + strings.Join(argvOf(row), " "))
	for _, word := range strings.Fields(command) {
		if !slices.ContainsFunc(have, func(w string) bool { return w == word || strings.HasSuffix(w, "/"+word) }) {
			return false
		}
	}
	return true
}
