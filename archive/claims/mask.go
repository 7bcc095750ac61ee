package claims

import (
	"encoding/json"
	"path"
	"strings"

	"toolrun/archive/ledger"
)

// shells run a script that is an argument.
var shells = map[string]bool{"sh": true, "bash": true, "dash": true, "zsh": true, "ksh": true, "ash": true, "busybox": true, "fish": true}

// Masked tells whether the exit code of a call may be that of another program than the one that was asked for: the call is a
// script of a shell that goes on after a failure, by a pipe, ";", "||", "&", a newline, "!", or a trap. A script under
// "set -e" (and pipefail, where it has pipes) goes on after none. Where argv is not kept, nothing is known: masked.
func Masked(row *ledger.Row) bool {
	script, options, known := scriptOf(row)
	return !known || masks(script, options)
}

// scriptOf is the script that a shell runs, "" where the call is none; options are those before it.
func scriptOf(row *ledger.Row) (script, options string, known bool) {
	var argv []string
	if json.Unmarshal(row.Argv.Raw(), &argv) != nil {
		return "", "", false
	}
	for i, word := range argv {
		if !shells[path.Base(word)] || i > 0 && !wraps(argv[:i]) {
			continue
		}
		for _, arg := range argv[i+1:] {
			if strings.HasPrefix(arg, "-") || strings.HasPrefix(arg, "+") {
				options += arg
				continue
			}
			if strings.Contains(options, "c") {
				return arg, options, true
			}
			return "", "", true // a file: what it does is not in the row, as of any program
		}
	}
	return "", "", true
}

// wraps tells whether what stands before a shell in argv only starts it.
func wraps(before []string) bool {
	for _, word := range before {
		switch path.Base(word) {
		case "env", "timeout", "nice", "nohup", "setsid", "stdbuf", "time", "xargs", "unshare", "docker", "exec", "run", "--":
			return true
		}
	}
	return false
}

// masks tells whether a script may end with 0 though a command of it failed.
func masks(script, options string) bool {
	bare := unquoted(script)
	strict := strings.Contains(options, "e")
	pipefail := strings.Contains(options, "pipefail")
	for _, line := range strings.FieldsFunc(bare, func(r rune) bool { return r == ';' || r == '\n' }) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "set" {
			break // set counts from where it stands
		}
		strict = strict || strings.HasPrefix(words[1], "-") && strings.Contains(words[1], "e")
		pipefail = pipefail || strings.Contains(line, "pipefail")
		bare = strings.TrimLeft(strings.TrimPrefix(strings.TrimSpace(bare), strings.TrimSpace(line)), " ;\n\t")
	}
	bare = strings.Trim(bare, " ;\n\t")
	for i := 0; i < len(bare); i++ {
		next := byte(0)
		if i+1 < len(bare) {
			next = bare[i+1]
		}
		switch bare[i] {
		case ';', '\n':
			if !strict {
				return true
			}
		case '|':
			if next == '|' || !pipefail {
				return true
			}
		case '&':
			if next == '&' { // a failure ends it
				i++
			} else if i == 0 || bare[i-1] != '>' && next != '>' && bare[i-1] != '<' {
				return true
			}
		case '!':
			if next == ' ' {
				return true
			}
		case '`':
			return true
		case '$':
			if next == '(' {
				return true
			}
		}
	}
	for _, word := range strings.Fields(bare) {
		switch word {
		case "trap", "if", "while", "until", "for", "case", "eval":
			return true
		}
	}
	return false
}

// unquoted is a script without what stands in quotes, and without what is escaped; of double quotes it keeps what the shell
// would run.
func unquoted(script string) string {
	var b strings.Builder
	for i := 0; i < len(script); i++ {
		switch c := script[i]; c {
		case '\\':
			i++
		case '\'':
			end := strings.IndexByte(script[i+1:], '\'')
			if end < 0 {
				return b.String()
			}
			i += end + 1
			b.WriteByte('_')
		case '"':
			for i++; i < len(script) && script[i] != '"'; i++ {
				switch {
				case script[i] == '\\':
					i++
				case script[i] == '`' || script[i] == '$' && i+1 < len(script) && script[i+1] == '(':
					b.WriteString(script[i : i+1])
					if script[i] == '$' {
						b.WriteByte('(')
					}
				}
			}
			b.WriteByte('_')
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
