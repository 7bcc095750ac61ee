package catalog

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// interpreter is a program that runs a text of its command line.
type interpreter struct {
	letters string // of the options that bring the text: -c, -e
	long    []string
	shell   bool   // takes letters together in any order (-lc), and the text after all options
	first   string // how a text reads the first argument behind it
	zeroth  bool   // the argument before the first one is the name that the program goes by
}

var interpreters = func() map[string]interpreter {
	sh := interpreter{letters: "c", shell: true, first: `"$1"`, zeroth: true}
	node := interpreter{letters: "ep", long: []string{"--eval", "--print"}, first: "process.argv[1]"}
	return map[string]interpreter{
		"sh": sh, "bash": sh, "dash": sh, "zsh": sh, "ksh": sh,
		"fish":   {letters: "c", long: []string{"--command"}, shell: true, first: "$argv[1]"},
		"python": {letters: "c", first: "sys.argv[1]"},
		"node":   node, "nodejs": node,
		"perl": {letters: "eE", first: "$ARGV[0]"},
		"ruby": {letters: "e", first: "ARGV[0]"},
	}
}()

// brings says whether an option is the one behind which the text stands.
func (p interpreter) brings(option string) bool {
	if slices.Contains(p.long, option) {
		return true
	}
	letters, ok := strings.CutPrefix(option, "-")
	if !ok || letters == "" || strings.Contains(letters, "-") {
		return false
	}
	if p.shell {
		return strings.ContainsAny(letters, p.letters)
	}
	return strings.ContainsAny(letters[len(letters)-1:], p.letters)
}

// scriptAdvice is what to do about a parameter in the middle of a text that a shell or another interpreter runs: what
// comes with it may be code. It is empty where there is none; a text that is a parameter as a whole is meant so.
func scriptAdvice(command []argument) string {
	var all []text
	for _, a := range command {
		if a.group == nil {
			all = append(all, a.text)
		}
		for _, inner := range a.group {
			all = append(all, inner.text)
		}
	}
	for i, t := range all {
		if !t.plain() {
			continue
		}
		name := filepath.Base(t.literal())
		p, ok := interpreters[strings.TrimRight(name, "0123456789.")]
		if !ok {
			continue
		}
		if flag, script := p.script(all[i+1:]); script != nil {
			return p.advice(name, flag, script)
		}
	}
	return ""
}

// script finds, in what stands behind the program, the text that it runs, where a parameter is a part of that.
func (p interpreter) script(rest []text) (flag string, script text) {
	for i, t := range rest {
		word := ""
		if t.plain() {
			word = t.literal()
		}
		option := strings.HasPrefix(word, "-") || strings.HasPrefix(word, "+")
		switch {
		case flag == "" && option && p.brings(word):
			flag = word
		case flag != "" && p.shell && option, flag == "" && (option || !t.plain()):
		case flag == "" && p.shell && i > 0 && rest[i-1].plain() && strings.HasSuffix(rest[i-1].literal(), "o"): // -o pipefail
		case flag != "" && len(t) > 1:
			return flag, t
		default:
			return "", nil
		}
	}
	return "", nil
}

// advice is the sentence with what to write instead: the script itself where that has no quotes of its own.
func (p interpreter) advice(name, flag string, script text) string {
	var written string
	var params []string
	for _, part := range script {
		if part.param == "" {
			written += part.literal
			continue
		}
		n := slices.Index(params, part.param)
		if n < 0 {
			n, params = len(params), append(params, part.param)
		}
		written += fmt.Sprintf(`"$%d"`, n+1)
	}
	values := params
	if !p.zeroth || slices.ContainsFunc(script, func(part part) bool { return strings.ContainsAny(part.literal, "'\"`\\\n") }) {
		written, values = "… "+p.first, params[:1]
	}
	example := []string{name, flag, written}
	if p.zeroth {
		example = append(example, name)
	}
	for _, v := range values {
		example = append(example, "{"+v+"}")
	}
	for i := range example {
		example[i] = strconv.Quote(example[i])
	}
	return fmt.Sprintf("{%s} is a part of a script, so that %s runs what a value of it says: give it as an argument of its own, as in [%s]", params[0], name, strings.Join(example, ", "))
}
