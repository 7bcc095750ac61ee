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

// words are what names a call: its tool and the commands that were executed, each with its subcommands. Names of files, options,
// and texts are none of them, for they may be about anything.
func words(row *ledger.Row) string {
	var list []string
	if name := row.ToolName.String(); !readingName().MatchString(name) {
		list = append(list, name)
	}
	if script, _, known := scriptOf(row); known && script != "" {
		for _, command := range strings.FieldsFunc(unquoted(script), func(r rune) bool { return strings.ContainsRune(";|&\n(){}`", r) }) {
			list = append(list, commandWords(strings.Fields(command))...)
		}
	} else {
		list = append(list, commandWords(argvOf(row))...)
	}
	return strings.Join(list, " ")
}

// commandWords are the words of one command.
func commandWords(argv []string) (list []string) {
	for len(argv) > 0 && strings.Contains(argv[0], "=") {
		argv = argv[1:] // a variable
	}
	if len(argv) == 0 {
		return nil
	}
	head := path.Base(argv[0])
	if head == "test" || head == "[" {
		return nil // it asks the shell, and tests no work
	}
	list = append(list, head)
	if readers[head] {
		return list
	}
	for i, word := range argv[1:] {
		switch {
		case interpreters[head] && i == 0 && !strings.HasPrefix(word, "-"):
			list = append(list, path.Base(word))
		case word == "--test":
			list = append(list, "test")
		case strings.HasPrefix(word, "-") || strings.ContainsAny(word, "/ \t\n") || fileToken().FindString(word) == word:
		default:
			if list = append(list, word); head == "git" {
				return list
			}
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
