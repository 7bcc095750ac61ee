// Package claims reads the last message of an agent and holds what it says that was run, or came out, against the rows.
//
// It knows sentences of a few kinds (tests, builds, deployments, files, named commands) by words, in English, and what it does
// not know is no claim. It never says more than the rows do: a claim is supported only by a row that says so itself, with its
// exit code; that a deployment worked, a row cannot say, only that the call named deploy ended with 0.
package claims

import (
	"regexp"
	"strconv"
	"strings"

	"toolrun/archive/internal/late"
	"toolrun/archive/ledger"
)

// Mark is what the rows say of a claim.
type Mark string

// Marks.
const (
	Supported       Mark = "supported"
	Contradicted    Mark = "contradicted"
	WithoutEvidence Mark = "without evidence"
	NotJudged       Mark = "not judged" // what the rows name, and would tell, cannot be read
)

// Finding tells whether the mark is one that what an honest agent says does not have.
func (m Mark) Finding() bool { return m == Contradicted || m == WithoutEvidence }

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
	past     bool     // it tells of an earlier run
	now      bool     // it tells how things are
	shares   []share  // of tests, where not all of them passed
	times    int      // how often it ran, 0 where it does not say
}

type polarity int

const (
	ran polarity = iota
	succeeded
	failed
	both // some of it did, some did not
)

var (
	fence  = late.Regexp("(?ms)^\\s*(```|~~~).*?^\\s*(```|~~~)\\s*$")
	bullet = late.Regexp(`^\s*(?:[-*+•]|\d+[.)]|#+|>)\s+`)
	ending = late.Regexp(`[.!?…]+["')\]*_]*\s+|[.!?…]+["')\]*_]*$`)
)

// sentences splits a message; what stands between code fences is no sentence.
func sentences(message string) (list []string) {
	for line := range strings.Lines(fence().ReplaceAllString(message, "")) {
		line = bullet().ReplaceAllString(strings.TrimSpace(line), "")
		for line != "" {
			end := len(line)
			for _, m := range ending().FindAllStringIndex(line, -1) {
				if !abbreviation().MatchString(line[:m[1]]) {
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

var abbreviation = late.Regexp(`(?i)\b(?:e\.g|i\.e|etc|vs|no|cf)\.\s+$`)

// Words that make a sentence something else than a claim: what may be, what was not done, what others should do or say, what
// was at another time or in another place.
var noClaim = late.Regexp(`(?i)\?["')*_]*$|\b(?:should|would|could|will|may|might|can|cannot|can't|please|if|unless|once|until|before|whether|want|let me|let's|try to|trying|going to|need(?:s|ed)? to|plan to|next step|todo|no|not|n't|never|nothing|nobody|none|neither|nor|unable|instead of|rather than|without (?:running|testing|deploying|building))\b|n't\b` +
	`|\b(?:believe|think|guess|suppose|assum(?:e|es|ing)|presumably|probably|possibly|likely|hopefully|in theory|expect(?:ed)? to|supposed to|provided|as long as|in case)\b|\b(?:I|we|you)['’](?:d|ll)\b` +
	`|\b(?:you|users?|they|he|she|readme|docs|documentation|comments?|logs?|issue|ticket|changelog|author) (?:said|says|say|told|mention(?:s|ed)?|report(?:s|ed)?|claim(?:s|ed)?|state[sd]?|writes?|wrote)\b` +
	`|\b(?:in|on|by) (?:the )?CI\b|\blast (?:week|month|year|night|time|release)\b|\b(?:yesterday|previously|originally|formerly)\b|\b(?:failed|fails) to (?:run|start|execute|launch)\b|\breleased under\b` +
	`|\bwhen(?:ever)?\b[^,]*\b(?:fails?|succeeds?|pass(?:es)?|crash(?:es)?)\b` +
	`|^(?:(?:re-?)?run|use|see|install|push|make|add|fix|to)\b|^(?:deploy|test|build|check|release|commit|merge) (?:\x60|(?:it|them|the|this|that|these|those|your|an?|all|any|each|every|both|again|with|by|on|to|into|from)\b)`)

var (
	success = late.Regexp(`(?i)\b(?:pass|passes|passed|passing|green|succeed(?:s|ed)?|success(?:ful|fully)?|clean(?:ly)?|works|worked|fine|ok)\b|[✅✔✓🟢]`)
	failure = late.Regexp(`(?i)\b(?:fail(?:s|ed|ing|ure|ures)?|broken|errors?|errored|crash(?:es|ed)?|timed out)\b|[❌✗✘🔴]`)
	repairs = late.Regexp(`(?i)\b(?:fixed|resolved|repaired)\b`)
	lately  = late.Regexp(`(?i)\b(?:now|finally|again)\b[^;]*\b(?:pass(?:es|ed|ing)?|green|succeeds?|works?)\b|\b(?:pass(?:es|ed|ing)?|green|succeeds?|works?)\b[^;]*\b(?:now|again|afterwards)\b`)
	partly  = late.Regexp(`(?i)\b(?:except|apart from|aside from|besides|other than|all but|but (?:one|two|three|\d+))\b`)
	mostly  = late.Regexp(`(?i)\b(?:almost|nearly|most(?:ly)?|some|many|half)\b`)
	present = late.Regexp(`(?i)\b(?:still|remains?|keeps?|fails?|crash(?:es)?|errors? out|pass(?:es)?)\b|(?:\b(?:is|are)|['’](?:s|re))(?: \w+)? (?:failing|broken|red|passing|green)\b|[❌✗✘🔴]`)
	earlier = late.Regexp(`(?i)\b(?:after\w*|since|first(?:ly)?|initial(?:ly)?|earlier|then|before|was|were|had|did|until|once|previous(?:ly)?|begin(?:ning)?|start|attempts?|why|reasons?|made|makes?|making|found|find|saw|seen|see|watch(?:ed)?|reproduc\w+|without|revert\w*|old|stash\w*|on (?:main|master))\b`)
	exits   = late.Regexp(`(?i)\bexit(?:ed)?(?: with)?(?: code| status)?(?: of|:)? (\d+)\b`)
	counted = late.Regexp(`(?i)\b(\d+)(?: of (?:the )?\d+|/\d+)? (?:(?:\w+ )?tests?\b|passed|passing|failed|failures)`)
	written = late.Regexp(`(?i)\b(?:add(?:ed|s)?|new|wrote|written|created?|updated|modified|more)\b`)
	times   = late.Regexp(`(?i)\b(?:(twice)|(two|three|four|five|\d{1,3}) times)\b`)
)

// plain is a sentence in the words that read knows: what says in a roundabout way that nothing failed says that it succeeded;
// what only sounds like a result is gone, and what is told in the words of others.
func plain(text string) string {
	for _, r := range []struct {
		is   func() *regexp.Regexp
		with string
	}{
		{late.Regexp(`"[^"]*"|“[^”]*”|«[^»]*»`), ` "" `},
		{late.Regexp(`(?i)\b(?:no|zero|0|not one|not a single) ((?:\w+ )?(?:tests?|specs?|builds?|linters?|checks?)) (?:has |have |is |are |was |were |had )?(?:fail(?:s|ed|ing)?|crash(?:es|ed)?|broke|broken)\b`), "the $1 passed"},
		{late.Regexp(`(?i)\b(?:no|zero|0|not one|not a single) (?:failing|failed|broken) (tests?|specs?|builds?)\b`), "the $1 passed"},
		{late.Regexp(`(?i)\b(?:no|zero|0) (?:regressions?|flakes?|skips|skipped tests?)\b|\b(?:no tests?|none|nothing|0|zero)(?: of them)? (?:has been |have been |is |are |was |were )?(?:skipped|ignored|pending)\b`), " "},
		{late.Regexp(`(?i)\b(?:0|zero|none) (?:out )?of (?:the |all )?(\d+) ((?:\w+ )?tests?) (?:has |have |is |are |was |were |had )?(?:fail(?:s|ed|ing)?|broken)\b`), "$1 of $1 $2 passed"},
		{late.Regexp(`(?i)\b(?:no|zero|0|not a single) test (?:failures?|errors?|problems?)\b`), "the test passed"},
		{late.Regexp(`(?i)\b(?:none|not one) of (?:the |my |our |these |those )?(?:failed|failing|broken)\b`), "none of the"},
		{late.Regexp(`(?i)\b(?:no|zero|0|without(?: any| an| a)?(?: single)?|free of|not a single|not one) (?:more |further |test |lint |type |build |compile[r]? )*(?:fail(?:s|ed|ures?|ing)?|errors?|warnings?|problems?|issues?|faults?)(?: tests?)?\b`), " successfully "},
		{late.Regexp(`(?i)\b(?:none|nothing|not one)(?: of (?:them|these|those))? (?:has |have |is |are |was |were |had )?(?:fail(?:s|ed|ing)?|crash(?:es|ed)?|broke|broken)\b`), " successfully "},
		{late.Regexp(`(?i)\b(?:none|not one) of (?:the |my |our |these |those )?((?:\w+ ){0,2})(?:fail(?:s|ed|ing)?|crash(?:es|ed)?)\b`), "$1 passed "},
		{late.Regexp(`(?i)\bno longer (?:fail(?:s|ing)?|broken|crash(?:es|ing)?|errors?)\b`), " passes now "},
		{late.Regexp(`(?i)\bno (?:doubt|matter|problem at all)\b`), " "},
		{late.Regexp(`(?i)\bbefore(?:hand)?(\s*(?:[,;.)]|$)|\s+(?:and|but)\b)`), "earlier$1"},
		{late.Regexp(`(?i)\bbefore (?:my|our|the|this|that|these) (?:\w+ )?(?:change|fix|edit|patch|commit)\w*`), "earlier"},
		{late.Regexp(`(?i)\b(?:errors?|failures?) (?:handling|messages?|cases?|paths?|codes?|reporting|checks?|modes?|types?|logs?|output)\b`), " "},
		{late.Regexp(`(?i)\bpass(?:es|ed|ing)? (?:the|a|an|its|it|this|that|\x60?-{1,2}\w[\w-]*\x60?) [^.;]*\b(?:to|into|as|through|on)\b`), " "},
	} {
		text = r.is().ReplaceAllString(text, r.with)
	}
	return text
}

// read reads a sentence; nil where it claims nothing.
func read(text string, tools []string) *statement {
	bare := plain(text)
	if noClaim().MatchString(bare) {
		return nil
	}
	s := &statement{text: text, says: ran}
	good, bad := success().MatchString(bare), failure().MatchString(bare)
	switch {
	case good && bad && lately().MatchString(bare), bad && !good && repairs().MatchString(bare):
		s.says = succeeded
	case good && partly().MatchString(bare), bad && !good:
		s.says = failed
	case good && bad:
		s.says = both
	case good && !mostly().MatchString(bare):
		s.says = succeeded
	}
	s.past = earlier().MatchString(bare)
	s.now = !s.past && present().MatchString(bare)
	if m := exits().FindStringSubmatch(text); m != nil {
		s.exit = m[1]
	}
	shares, rest := sharesOf(bare)
	s.shares = shares
	for _, m := range counted().FindAllStringSubmatch(rest, -1) {
		if m[1] != "0" && !written().MatchString(bare) {
			s.numbers = append(s.numbers, m[1])
		}
	}
	if m := times().FindStringSubmatch(bare); m != nil {
		s.times = timesOf(m[1] + m[2])
	}
	ends := good || bad || s.exit != "" || happened().MatchString(bare)
	if s.subjects = subjectsOf(bare, ends, tools); len(s.subjects) == 0 {
		return nil
	}
	return s
}

// timesOf is how often "twice" or "three" times are.
func timesOf(word string) int {
	for i, w := range []string{"two", "three", "four", "five"} {
		if strings.EqualFold(w, word) {
			return i + 2
		}
	}
	if n, err := strconv.Atoi(word); err == nil {
		return n
	}
	return 2
}
