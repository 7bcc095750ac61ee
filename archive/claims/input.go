package claims

import (
	"path"
	"slices"
	"strings"

	"toolrun/archive/internal/late"
)

var (
	redirection = late.Regexp(`\d*(?:<<<|<<-?|<>|<&|>&|>>|>\||&>>?|<|>)[ \t]*[^\s;|&<>(){}]+`)
	stdinFile   = late.Regexp(`^/(?:dev/(?:stdin|fd/\d+)|proc/[^/]+/fd/\d+)$`)
)

// readsScript tells whether a command of a script, which has no quotes any more, runs what it reads from its standard input:
// a shell without a script of its own, or another interpreter to which something is redirected. What that is does after a
// failure, the row does not tell.
func readsScript(bare string) bool {
	fed := strings.Contains(bare, "<")
	for _, command := range strings.FieldsFunc(redirection().ReplaceAllString(bare, " "), func(r rune) bool { return strings.ContainsRune(";|&\n(){}", r) }) {
		words := strings.Fields(command)
		for len(words) > 0 && strings.Contains(words[0], "=") {
			words = words[1:] // a variable
		}
		for i, word := range words {
			if i > 0 && !wrapped(words[:i]) {
				continue
			}
			args := words[i+1:]
			switch name := path.Base(word); {
			case name == "su", name == "env" && slices.ContainsFunc(args, func(arg string) bool { return splitOption().MatchString(arg) }):
				return true
			case name == "." || name == "source":
				if len(args) > 0 && stdinFile().MatchString(args[0]) {
					return true
				}
			case shells[name]:
				if _, _, kind := shellScript(args); kind == stdin {
					return true
				}
			case fed && interpreters[strings.TrimRight(name, ".0123456789")]:
				program := slices.IndexFunc(args, func(arg string) bool { return arg == "-" || !strings.HasPrefix(arg, "-") })
				if program < 0 || args[program] == "-" || stdinFile().MatchString(args[program]) {
					return true
				}
			}
		}
	}
	return false
}

// splitOption is the option of env that takes a command line in one word.
var splitOption = late.Regexp(`^(?:-[A-Za-z]*S|--split-string(?:=|$))`)

// splitStrings puts the words of such a command line in its place.
func splitStrings(argv []string) []string {
	env := slices.IndexFunc(argv, func(word string) bool { return path.Base(word) == "env" })
	if env < 0 || env > 0 && !wrapped(argv[:env]) {
		return argv
	}
	for i, arg := range argv[env+1:] {
		found := splitOption().FindString(arg)
		if found == "" {
			if strings.HasPrefix(arg, "-") || strings.Contains(arg, "=") {
				continue
			}
			break
		}
		line, rest := arg[len(found):], argv[env+1+i+1:]
		if line == "" && len(rest) > 0 {
			line, rest = rest[0], rest[1:]
		}
		return slices.Concat(argv[:env+1], splitWords(line), rest)
	}
	return argv
}

// splitWords splits a command line as env does: at white space that is neither in quotes nor escaped.
func splitWords(line string) (words []string) {
	var word strings.Builder
	var quote rune
	in, escaped := false, false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			in, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			in, quote = true, r
		case quote == 0 && strings.ContainsRune(" \t\n\v\f\r", r):
			if in {
				words = append(words, word.String())
				word.Reset()
				in = false
			}
		default:
			word.WriteRune(r)
			in = true
		}
	}
	if in {
		words = append(words, word.String())
	}
	return words
}
