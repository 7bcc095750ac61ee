package pairing_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"toolrun/archive/ledger"
	"toolrun/archive/pairing"
	"toolrun/archive/transcript"
)

// answered is a call of a real session, and what toolrun answered in every form that a loop of one's own may keep.
type answered struct {
	s     *session
	call  *transcript.Call
	row   *ledger.Row
	forms map[string]string
}

func answeredCalls(t *testing.T) (list []*answered) {
	t.Helper()
	for _, name := range honest {
		s := open(t, transcript.Codex, name)
		for _, item := range s.pair(t).Items {
			if item.Kind != pairing.Paired || item.Call.Result == nil || item.Row().Status == ledger.StatusBlocked {
				continue
			}
			a := &answered{s, item.Call, item.Row(), map[string]string{}}
			for _, v := range item.Call.Result.Views {
				var facts struct{ Stdout, Stderr string }
				switch {
				case v.Cut:
				case json.Unmarshal([]byte(v.Text), &facts) == nil:
					var indented bytes.Buffer
					if err := json.Indent(&indented, []byte(v.Text), "", "  "); err != nil {
						t.Fatal(err)
					}
					a.forms["facts"], a.forms["indented"] = v.Text, indented.String()
					a.forms["stdout"], a.forms["stderr"] = facts.Stdout, facts.Stderr
				case strings.HasPrefix(v.Text, "OK: ") || strings.HasPrefix(v.Text, "FAILED: "):
					a.forms["text"] = v.Text
				}
			}
			list = append(list, a)
		}
	}
	if len(list) < 15 {
		t.Fatalf("%d calls", len(list))
	}
	return list
}

// kept is what becomes of the call where a loop kept this of its answer.
func (a *answered) kept(t *testing.T, text string) pairing.Item {
	t.Helper()
	args := string(a.call.Args)
	s := *a.s
	var err error
	s.text, err = json.Marshal([]object{
		{"role": "assistant", "tool_calls": []object{{"id": a.call.ID, "type": "function", "function": object{"name": a.row.ToolName.String(), "arguments": args}}}},
		{"role": "tool", "tool_call_id": a.call.ID, "content": text},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.name, s.rows, s.session = "messages.json", []*ledger.Row{a.row}, a.row.SessionID.String()
	return s.pair(t).Items[0]
}

var cutMarks = []string{"...", "…", "[truncated]", "\n[truncated]", "... [1234 characters truncated]", "\n[... truncated ...]\n", "\n\n... 12 lines omitted ...\n\n", "<truncated>", "... (output truncated)"}

// cutAt gives what a loop keeps: a beginning, an end, or both, each of them at least so long; "" where text is too short.
func cutAt(random *rand.Rand, text string) (head, mark, tail string) {
	const least = 48
	if len(text) < 2*least+8 {
		return "", "", ""
	}
	boundary := func(n int) int {
		for !utf8.RuneStart(text[n]) {
			n--
		}
		return n
	}
	from := boundary(least + random.IntN(len(text)-2*least-4))
	to := boundary(from + 4 + random.IntN(len(text)-least-from-3))
	mark = cutMarks[random.IntN(len(cutMarks))]
	switch random.IntN(5) {
	case 0:
		return text[:from], "", ""
	case 1:
		return text[:from], mark, ""
	case 2:
		return "", "", text[to:]
	case 3:
		return "", mark, text[to:]
	}
	return text[:from], mark, text[to:]
}

// cuts is how many are tried of each form of an answer.
const cuts = 12

func TestAPartOfAnAnswerThatALoopKeptIsComparedInPart(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 11))
	whole, tries := map[string]int{}, 0
	for _, a := range answeredCalls(t) {
		if _, state, ok := strings.Cut(a.forms["text"], "\n--- stdout"); ok && strings.Contains(state, "\n--- program ") {
			if item := a.kept(t, "[truncated] --- stdout"+state); item.Kind != pairing.Paired || item.Why == "" {
				t.Errorf("%s: %s (%s)", a.row.ToolName, item.Kind, item.Why)
			}
		}
		if facts := a.forms["facts"]; strings.Contains(facts, `"process":`) {
			for _, kept := range []string{"..." + facts[50:], facts[:len(facts)-9] + "..."} {
				if item := a.kept(t, kept); item.Kind != pairing.Paired || item.Why == "" {
					t.Errorf("%s: %s (%s): %q", a.row.ToolName, item.Kind, item.Why, kept)
				}
			}
		}
		if strings.Contains(a.forms["text"], "\n--- program ") {
			continue // whose state is in no row
		}
		for form, text := range a.forms {
			for range cuts {
				head, mark, tail := cutAt(random, text)
				kept := head + mark + tail
				if kept == "" {
					continue
				}
				tries++
				if item := a.kept(t, kept); item.Kind != pairing.Paired || item.Why == "" {
					t.Fatalf("%s of %s: %s (%s): %q, %q, %q", form, a.row.ToolName, item.Kind, item.Why, short(head), mark, short(tail))
				}
				whole[form]++
				at := random.IntN(len(head) + len(tail))
				changed := changeAt(head+tail, at)
				kept = changed[:len(head)] + mark + changed[len(head):]
				if item := a.kept(t, kept); item.Kind != pairing.Altered {
					t.Fatalf("%s of %s, byte %d changed: %s (%s): %q, %q, %q", form, a.row.ToolName, at, item.Kind, item.Why, short(head), mark, short(tail))
				}
			}
		}
	}
	if tries < 300 || len(whole) < 4 {
		t.Errorf("%d cuts, of each form %v", tries, whole)
	}
}

// changeAt writes another character there, of as many bytes.
func changeAt(text string, at int) string {
	for !utf8.RuneStart(text[at]) {
		at--
	}
	r, size := utf8.DecodeRuneInString(text[at:])
	with := "Z"
	switch {
	case size > 1:
		with = string(r ^ 1)
	case r == 'Z':
		with = "q"
	}
	return text[:at] + with + text[at+size:]
}

// short is what to look at of a text.
func short(text string) string {
	if len(text) > 600 {
		return text[:300] + " … " + text[len(text)-300:]
	}
	return text
}

func TestWhatALoopMakesOfAnAnswerIsAlteredWhereItSaysSomethingElse(t *testing.T) {
	for _, a := range answeredCalls(t) {
		text := a.forms["text"]
		first, rest, _ := strings.Cut(text, "\n")
		if len(rest) < 150 {
			continue
		}
		other := strings.NewReplacer("OK: ", "FAILED: ", "FAILED: ", "OK: ").Replace(first)
		for what, kept := range map[string]string{
			"a few characters":               text[:20] + "...",
			"another verdict in front":       other + "\n" + rest[:60] + "...",
			"another verdict behind":         text[:100] + "\n[truncated]\n" + other,
			"the middle is gone, unmarked":   text[:60] + rest[len(rest)-60:],
			"what is no mark of truncation":  text[:60] + "\n[12 passed, truncated]\n" + rest[len(rest)-60:],
			"a number alone":                 text[:60] + "... 12 ..." + rest[len(rest)-60:],
			"a beginning with an end to it":  text[:60] + "[truncated]\nall is well",
			"an end with a beginning to it":  "all is well\n[truncated]" + text[len(text)-60:],
			"the verdict and nothing of the": first + "\nall is well",
		} {
			if item := a.kept(t, kept); item.Kind != pairing.Altered {
				t.Errorf("%s, %s: %s (%s): %q", a.row.ToolName, what, item.Kind, item.Why, short(kept))
			}
		}
		for _, kept := range []string{first, first + "\n...", first + " [truncated]", "...\n" + first} {
			if item := a.kept(t, kept); item.Kind != pairing.Paired || item.Why == "" {
				t.Errorf("%s: %s (%s): %q", a.row.ToolName, item.Kind, item.Why, kept)
			}
		}
	}
}

// A transcript without ids of the record is matched by what its loop kept too.
func TestMessagesWhoseResultsWereCutFindTheirSession(t *testing.T) {
	for _, form := range forms {
		s := open(t, transcript.OpenCode, "honest-tests")
		ownLoop(t, s, form, func(text, _ string) string { return text[:min(len(text), 90)] + "..." })
		r := s.pair(t)
		if count(r, pairing.Paired) != 2 || r.Findings > 0 {
			t.Errorf("%s:\n%s", form, tell(r))
		}
	}
}

// What a terminal shows of colours is the text without their codes.
func TestATextWithoutItsEscapeCodesIsPaired(t *testing.T) {
	const colours, plain = "\x1b[1;31mred\x1b[0m and \x1b]8;;https://example.org\x1b\\a link\x1b]8;;\x07\r\n", "red and a link\n"
	coloured := 0
	for _, a := range answeredCalls(t) {
		stdout := a.forms["stdout"]
		if stdout == "" || a.row.Truncated || strings.Contains(a.forms["text"], "left out") || strings.ContainsRune(stdout, utf8.RuneError) || strings.ContainsAny(stdout, "\x1b\r") {
			continue
		}
		coloured++
		hash := string(a.row.OutputHash)
		row := *a.row
		row.OutputBytes += int64(len(colours))
		a.row = &row
		heading := strings.NewReplacer(fmt.Sprintf("--- stdout, %d bytes ---\n", len(stdout)), fmt.Sprintf("--- stdout, %d bytes ---\n", row.OutputBytes))
		a.s.more = map[string][]byte{hash: []byte(colours + stdout)}
		for added, want := range map[string]pairing.Kind{colours: pairing.Paired, plain: pairing.Paired, strings.Replace(plain, "red", "rad", 1): pairing.Altered} {
			text := strings.Replace(heading.Replace(a.forms["text"]), stdout, added+stdout, 1)
			for _, kept := range []string{text, added + stdout} {
				if item := a.kept(t, kept); item.Kind != want || want == pairing.Paired && item.Why != "" {
					t.Errorf("%s: %s (%s): %q", row.ToolName, item.Kind, item.Why, short(kept))
				}
			}
		}
	}
	if coloured < 5 {
		t.Errorf("%d calls", coloured)
	}
}

// A loop that marks failures marks all of them, whatever else it keeps of a result, and nothing else.
func TestAFailureWithoutTheMarkOfTheOthersIsAltered(t *testing.T) {
	var calls []*answered // three that failed, then one that did not
	var success *answered
	objects := map[string][]byte{}
	for _, a := range answeredCalls(t) {
		switch {
		case a.row.Status == ledger.StatusSuccess && success == nil && a.forms["stdout"] != "":
			success = a
		case a.row.Status != ledger.StatusSuccess && len(calls) < 3 && a.forms["text"] != "":
			calls = append(calls, a)
		}
	}
	calls = append(calls, success)
	var rows []*ledger.Row
	for _, a := range calls {
		row := *a.row
		row.SessionID, row.ClientCallID = calls[0].row.SessionID, nil
		rows = append(rows, &row)
		for _, hash := range []string{string(row.OutputHash), string(row.StderrHash), row.InputHash} {
			if hash != "" {
				content, err := a.s.content(hash)
				if err != nil {
					t.Fatal(err)
				}
				objects[hash] = content
			}
		}
	}
	for what, c := range map[string]struct {
		marked [4]bool
		want   int
	}{
		"each as it is":                     {[4]bool{true, true, true, false}, 0},
		"no marks at all":                   {[4]bool{}, 0},
		"one failure without it":            {[4]bool{true, false, true, false}, 1},
		"a success with it":                 {[4]bool{true, true, true, true}, 1},
		"a success with it, and no failure": {[4]bool{3: true}, 1},
	} {
		for _, form := range []string{"text", "stdout"} {
			var list []object
			for i, a := range calls {
				said := a.forms[form]
				if said == "" {
					said = a.forms["stderr"]
				}
				id := fmt.Sprint("call_", i)
				list = append(list, object{"role": "assistant", "content": []object{{"type": "tool_use", "id": id, "name": a.row.ToolName.String(), "input": a.call.Args}}},
					object{"role": "user", "content": []object{{"type": "tool_result", "tool_use_id": id, "content": said, "is_error": c.marked[i]}}})
			}
			s := *success.s
			var err error
			if s.text, err = json.Marshal(object{"model": "claude", "messages": list}); err != nil {
				t.Fatal(err)
			}
			s.name, s.rows, s.session, s.more = "messages.json", rows, rows[0].SessionID.String(), objects
			if r := s.pair(t); count(r, pairing.Altered) != c.want || count(r, pairing.Paired) != 4-c.want {
				t.Errorf("%s, %s:\n%s", what, form, tell(r))
			}
		}
	}
}
