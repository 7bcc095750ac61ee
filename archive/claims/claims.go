// Package claims reads the last message of an agent and holds what it says that was run, or came out, against the rows.
//
// It knows sentences of a few kinds (tests, builds, deployments, files, named commands) by words, in English, and what it does
// not know is no claim. It never says more than the rows do: a claim is supported only by a row that says so itself, with its
// exit code; that a deployment worked, a row cannot say, only that the call named deploy ended with 0.
package claims

import (
	"regexp"
	"strings"

	"toolrun/archive/ledger"
)

// Mark is what the rows say of a claim.
type Mark string

// Marks.
const (
	Supported       Mark = "supported"
	Contradicted    Mark = "contradicted"
	WithoutEvidence Mark = "without evidence"
)

// Claim is one sentence that claims a run or a result.
type Claim struct {
	Sentence string
	Mark     Mark
	Why      string
	Rows     []*ledger.Row // those that would have to say so, in the order of seq
}

// Content gives stored bytes, whole.
type Content func(hash string) ([]byte, error)

// Judge finds the claims of a message and marks them by the rows of its session, in the order of seq. tools are the names of
// the catalog.
func Judge(message string, rows []*ledger.Row, tools []string, content Content) []Claim {
	var list []Claim
	for _, sentence := range sentences(message) {
		if s := read(sentence, tools); s != nil {
			list = append(list, judge(s, rows, content))
		}
	}
	return list
}

// statement is what a sentence says.
type statement struct {
	text     string
	subjects []subject
	says     polarity
	exit     string   // "exit code N"
	numbers  []string // of tests
}

type polarity int

const (
	ran polarity = iota
	succeeded
	failed
)

var (
	fence  = regexp.MustCompile("(?ms)^\\s*(```|~~~).*?^\\s*(```|~~~)\\s*$")
	bullet = regexp.MustCompile(`^\s*(?:[-*+•]|\d+[.)]|#+|>)\s+`)
	ending = regexp.MustCompile(`[.!?…]+["')\]*_]*\s+|[.!?…]+["')\]*_]*$`)
)

// sentences splits a message; what stands between code fences is no sentence.
func sentences(message string) (list []string) {
	for line := range strings.Lines(fence.ReplaceAllString(message, "")) {
		line = bullet.ReplaceAllString(strings.TrimSpace(line), "")
		for line != "" {
			end := len(line)
			for _, m := range ending.FindAllStringIndex(line, -1) {
				if !abbreviation.MatchString(line[:m[1]]) {
					end = m[1]
					break
				}
			}
			if s := strings.TrimSpace(line[:end]); s != "" {
				list = append(list, s)
			}
			line = line[end:]
		}
	}
	return list
}

var abbreviation = regexp.MustCompile(`(?i)\b(?:e\.g|i\.e|etc|vs|no|cf)\.\s+$`)

// Words that make a sentence something else than a claim: what may be, what was not done, what others should do.
var noClaim = regexp.MustCompile(`(?i)\?["')*_]*$|\b(?:should|would|could|will|may|might|can|cannot|can't|please|if|unless|once|until|before|whether|want|let me|let's|try to|trying|going to|need(?:s|ed)? to|plan to|next step|todo|not|n't|never|nothing|nobody|neither|nor|unable|instead of|rather than|without (?:running|testing|deploying|building))\b|n't\b|^(?:run|deploy|test|build|check|use|see|install|push|make|add|fix)\b`)

var (
	success = regexp.MustCompile(`(?i)\b(?:pass|passes|passed|passing|green|succeed(?:s|ed)?|success(?:ful|fully)?|clean(?:ly)?|works|worked|fine|ok)\b`)
	failure = regexp.MustCompile(`(?i)\b(?:fail(?:s|ed|ing|ure|ures)?|broken|errors?|errored|crash(?:es|ed)?|timed out)\b`)
	noFault = regexp.MustCompile(`(?i)\b(?:no|zero|0|without(?: any| an)?|free of) (?:more |further |test |lint |type |build |compile[r]? )*(?:fail(?:s|ed|ures?|ing)?|errors?|warnings?|problems?|issues?|faults?)(?: tests?)?\b`)
	exits   = regexp.MustCompile(`(?i)\bexit(?:ed with)?(?: code| status)?(?: of)? (\d+)\b`)
	counted = regexp.MustCompile(`(?i)\b(\d+)(?: of (?:the )?\d+|/\d+)? (?:(?:\w+ )?tests?\b|passed|passing|failed|failures)`)
)

// read reads a sentence; nil where it claims nothing.
func read(text string, tools []string) *statement {
	bare := noFault.ReplaceAllString(text, " successfully ")
	if noClaim.MatchString(bare) {
		return nil
	}
	s := &statement{text: text, says: ran}
	good, bad := success.MatchString(bare), failure.MatchString(bare)
	switch {
	case good && !bad:
		s.says = succeeded
	case bad && !good:
		s.says = failed
	}
	if m := exits.FindStringSubmatch(text); m != nil {
		s.exit = m[1]
	}
	for _, m := range counted.FindAllStringSubmatch(text, -1) {
		s.numbers = append(s.numbers, m[1])
	}
	ends := good || bad || s.exit != "" || happened.MatchString(bare)
	if s.subjects = subjectsOf(bare, ends, tools); len(s.subjects) == 0 {
		return nil
	}
	return s
}
