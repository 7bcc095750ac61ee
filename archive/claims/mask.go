package claims

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"toolrun/archive/internal/late"
	"toolrun/archive/ledger"
)

// shells run a script that is an argument.
var shells = map[string]bool{"sh": true, "bash": true, "rbash": true, "dash": true, "zsh": true, "ksh": true, "mksh": true, "ash": true, "busybox": true,
	"fish": true, "csh": true, "tcsh": true, "nu": true, "pwsh": true}

// Masked tells whether the exit code of a call may be that of another program than the one that was asked for: the call is a
// script of a shell that goes on after a failure, by a pipe, ";", "||", "&", a newline, "!", or a trap; or one that the row
// does not have, since the shell, or one that the script starts, read it from its standard input. A script under "set -e" (and pipefail, where it has pipes)
// goes on after none, as long as it has no "&&" before its end, which "set -e" lets pass, and takes back nothing. Where argv is
// not kept, nothing is known: masked.
func Masked(row *ledger.Row) bool {
	script, options, known := scriptOf(row)
	return !known || masks(script, options)
}

// scriptOf is the script that a shell runs, "" where the call is none; options are those before it. The shell may stand behind
// other programs (env, timeout, sudo, docker exec): the first word that names one and has a script counts. Programs that give a
// shell what they are given count too.
func scriptOf(row *ledger.Row) (script, options string, known bool) {
	var argv []string
	if json.Unmarshal(row.Argv.Raw(), &argv) != nil {
		return "", "", false
	}
	argv = splitStrings(argv)
	for i, word := range argv {
		if !shells[path.Base(word)] {
			continue
		}
		script, options, kind := shellScript(argv[i+1:])
		switch {
		case kind == inline:
			return script, options, true
		case kind == stdin && (i == 0 || wrapped(argv[:i])):
			return "", "", false
		}
	}
	for i, word := range argv {
		if handsOn[path.Base(word)] && (i == 0 || wrapped(argv[:i])) {
			return handed(path.Base(word), argv[i+1:])
		}
	}
	return "", "", true
}

// handsOn are programs that are no shells and have one run what they are given.
var handsOn = map[string]bool{"ssh": true, "su": true, "runuser": true, "flock": true, "script": true}

// handed is the script in the arguments of such a program, as scriptOf tells it.
func handed(program string, args []string) (script, options string, known bool) {
	if program == "ssh" {
		return strings.Join(args, " "), "", true
	}
	if program == "script" && !slices.ContainsFunc(args, func(arg string) bool { return arg == "--return" || returnOption().MatchString(arg) }) {
		return "", "", false // its exit code is its own
	}
	for i, arg := range args {
		if script, ok := strings.CutPrefix(arg, "--command="); ok {
			return script, "", true
		}
		if i+1 < len(args) && (arg == "--command" || commandOption().MatchString(arg)) {
			return args[i+1], "", true
		}
	}
	return "", "", program != "su" // which reads its standard input
}

// returnOption is an option of script that has it end as its command does.
var returnOption = late.Regexp(`^-[A-Za-z]*e[A-Za-z]*$`)

// commandOption is an option of one letter, or several of them, of which the last takes a script.
var commandOption = late.Regexp(`^-[A-Za-z]*c$`)

// where a shell takes its script from.
type scriptKind int

const (
	file   scriptKind = iota // what it does is not in the row, as of any program
	inline                   // an argument
	stdin
)

// shellScript reads the arguments of a shell: options is what switches something on, in one word.
func shellScript(args []string) (script, options string, kind scriptKind) {
	command := false
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case strings.HasPrefix(arg, "--") && len(arg) > 2:
			if arg == "--rcfile" || arg == "--init-file" {
				i++
			}
			continue
		case arg == "-" || arg == "--":
			continue
		case strings.HasPrefix(arg, "-") || strings.HasPrefix(arg, "+"):
			on := strings.HasPrefix(arg, "-")
			if on {
				options += arg[1:]
				command = command || strings.Contains(arg, "c") || strings.EqualFold(arg, "-Command")
			}
			if (strings.HasSuffix(arg, "o") || strings.HasSuffix(arg, "O")) && i+1 < len(args) {
				if i++; on {
					options += map[string]string{"errexit": "e", "pipefail": " pipefail "}[args[i]]
				}
			}
			continue
		case command:
			return arg, options, inline
		case strings.Contains(options, "s") || stdinFile().MatchString(arg):
			return "", options, stdin
		}
		return "", options, file
	}
	return "", options, stdin
}

// wrapped tells whether what stands before a shell in argv only starts it.
func wrapped(before []string) bool {
	for _, word := range before {
		switch path.Base(word) {
		case "env", "command", "busybox", "timeout", "nice", "ionice", "taskset", "chrt", "setpriv", "strace", "nohup", "setsid", "stdbuf", "time", "xargs", "unshare", "docker", "podman", "kubectl", "exec", "run", "sudo", "doas", "su", "ssh", "chroot", "flock", "script", "--":
			return true
		}
	}
	return false
}

// optionWord is an argument of set that switches by letters.
var optionWord = late.Regexp(`^-[A-Za-z]+$`)

// masks tells whether a script may end with 0 though a command of it failed.
func masks(script, options string) bool {
	bare := unquoted(script)
	strict := strings.Contains(strings.ReplaceAll(options, "pipefail", ""), "e")
	pipefail := strings.Contains(options, "pipefail")
	for _, line := range strings.FieldsFunc(bare, func(r rune) bool { return r == ';' || r == '\n' }) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "set" {
			break // set counts from where it stands
		}
		strict = strict || optionWord().MatchString(words[1]) && strings.Contains(words[1], "e") || slices.Contains(words, "errexit") && words[1] == "-o"
		pipefail = pipefail || strings.HasPrefix(words[1], "-") && slices.Contains(words, "pipefail")
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "+") }) {
			strict, pipefail = false, false // taken back
		}
		bare = strings.TrimLeft(strings.TrimPrefix(strings.TrimSpace(bare), strings.TrimSpace(line)), " ;\n\t")
	}
	bare = strings.Trim(bare, " ;\n\t")
	passed := false // "&&": what stands before it may fail, and set -e does not look
	for i := 0; i < len(bare); i++ {
		next := byte(0)
		if i+1 < len(bare) {
			next = bare[i+1]
		}
		switch bare[i] {
		case ';', '\n':
			if !strict || passed {
				return true
			}
		case '|':
			if next == '|' || !pipefail {
				return true
			}
		case '&':
			if next == '&' { // a failure ends it, where it stands last
				i++
				passed = true
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
		case '(':
			if next == ')' || i > 0 && bare[i-1] == '<' { // a function takes the place of a command; <( is waited for by nobody
				return true
			}
		}
	}
	if readsScript(bare) {
		return true
	}
	inner := false // a shell in the script: what stands in quotes behind its -c was not looked at
	for _, word := range strings.FieldsFunc(bare, func(r rune) bool { return strings.ContainsRune(" \t\n;(){}", r) }) {
		if inner = inner || shells[path.Base(word)] || handsOn[path.Base(word)]; inner && (commandOption().MatchString(word) || path.Base(word) == "ssh") {
			return true
		}
		switch word {
		case "trap", "if", "while", "until", "for", "select", "case", "eval", "coproc", "set", "alias", "function":
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
