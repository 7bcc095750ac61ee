package claims

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"toolrun/archive/internal/late"
	"toolrun/archive/ledger"
)

// argvOf is what was executed, nil where the row does not have it.
func argvOf(row *ledger.Row) (argv []string) {
	if json.Unmarshal(row.Argv.Raw(), &argv) != nil {
		return nil
	}
	return argv
}

// readers look at files, or print what they are given: what stands behind them names nothing that was done.
var readers = wordSet(`cat less more head tail bat nl grep egrep fgrep rg ag ack ls tree find fd stat file wc diff cmp cut sort uniq tr
	sed awk jq yq xxd od hexdump strings echo printf true false which type cp mv rm mkdir rmdir touch tee ln chmod chown patch cd pwd`)

// readingName is how tools that look at something are called.
var readingName = late.Regexp(`(?i)^(?:read|list|search|grep|find|view|get|show|cat|open|ls|fetch|write|edit|create|delete|move|copy)[_-]|^(?:read|list|search|find|view|get|show|open|write|edit|create)[A-Z]`)

// interpreters run a file.
var interpreters = wordSet("sh bash dash zsh ksh python python3 node deno bun ruby perl php lua java")

func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// runners run what an argument of theirs names: a target, a script, a subcommand.
var runners = wordSet(`make gmake ninja cmake meson bazel just task rake invoke tox nox hatch pdm poetry uv uvx pipenv pipx pip pip3 npm npx pnpm yarn bun deno turbo nx
	lerna gulp grunt go cargo rustup swift zig dotnet mvn mvnw gradle gradlew sbt lein mix rebar3 composer bundle rails artisan manage.py docker podman
	docker-compose kubectl helm terraform git gh apt apt-get brew conda`)

// words are what names a call: its tool and the commands that were executed, each with its subcommands. Names of files, options,
// and texts are none of them, for they may be about anything.
func words(row *ledger.Row) string {
	named, given := namesOf(row)
	return strings.Join(append(named, given...), " ")
}

// names are those of the words that tell what was run. The others are values that were given to a program, and may name
// what it does, or anything.
func names(row *ledger.Row) string {
	named, _ := namesOf(row)
	return strings.Join(named, " ")
}

func namesOf(row *ledger.Row) (named, given []string) {
	if name := row.ToolName.String(); !readingName().MatchString(name) {
		named = append(named, name)
	}
	commands := [][]string{argvOf(row)}
	if script, _, known := scriptOf(row); known && script != "" {
		commands = nil
		for _, command := range strings.FieldsFunc(unquoted(script), func(r rune) bool { return strings.ContainsRune(";|&\n(){}`", r) }) {
			commands = append(commands, strings.Fields(command))
		}
	}
	for _, command := range commands {
		n, g := commandWords(command)
		named, given = append(named, n...), append(given, g...)
	}
	return named, given
}

// commandWords are the words of one command: those that tell what is run, and those that it is given.
func commandWords(argv []string) (named, given []string) {
	for len(argv) > 0 && strings.Contains(argv[0], "=") {
		argv = argv[1:] // a variable
	}
	if len(argv) == 0 {
		return nil, nil
	}
	head := path.Base(argv[0])
	if head == "test" || head == "[" {
		return nil, nil // it asks the shell, and tests no work
	}
	if !readers[head] {
		named, given = argumentWords(head, argv[1:])
	}
	return append([]string{head}, named...), given
}

// argumentWords are the words among the arguments of a program.
func argumentWords(program string, args []string) (named, given []string) {
	interpreter := func(name string) bool { return interpreters[strings.TrimRight(name, ".0123456789")] }
	if slices.Contains(args, "--test") {
		named = append(named, "test")
	}
	switch {
	case program == "git":
		list := plainWords(args)
		return append(named, list[:min(len(list), 1)]...), nil
	case runners[program]:
		return append(named, plainWords(args)...), nil
	case interpreter(program):
		script := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
		if script < 0 || strings.ContainsAny(args[script], " \t\n;()'\"") {
			return named, plainWords(args)
		}
		name := path.Base(args[script])
		more, given := argumentWords(name, args[script+1:])
		return slices.Concat(named, []string{name}, more), given
	case wrapped([]string{program}):
		inner := slices.IndexFunc(args, func(arg string) bool { return runners[path.Base(arg)] || interpreter(path.Base(arg)) })
		if inner < 0 {
			return append(named, plainWords(args)...), nil
		}
		more, given := commandWords(args[inner:])
		return append(named, more...), given
	}
	return named, plainWords(args)
}

// plainWords are those of some arguments that are no option, no file and no text.
func plainWords(args []string) (list []string) {
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") && !strings.ContainsAny(arg, "/ \t\n") && fileToken().FindString(arg) != arg {
			list = append(list, arg)
		}
	}
	return list
}

// mentions tells whether an argument is the file, or a script names it.
func mentions(row *ledger.Row, name string, content Content) bool {
	summary := row.InputSummary.String()
	argv := argvOf(row)
	if !strings.Contains(summary, name) && !strings.HasSuffix(summary, "...") && !strings.Contains(row.Argv.String(), name) {
		return false
	}
	is := func(text string) bool {
		return text == name || strings.HasSuffix(text, "/"+strings.TrimPrefix(name, "./"))
	}
	if slices.ContainsFunc(argv, is) {
		return true
	}
	if script, _, known := scriptOf(row); known && slices.ContainsFunc(strings.FieldsFunc(script, func(r rune) bool { return strings.ContainsRune(" \t\n;|&<>()'\"`", r) }), is) {
		return true
	}
	text, err := content(row.InputHash)
	if err != nil {
		return is(summary)
	}
	var args any
	return json.Unmarshal(text, &args) == nil && slices.ContainsFunc(leaves(args), is)
}
