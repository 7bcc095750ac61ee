package redact

import (
	"bytes"
	"math"
	"regexp"
	"strings"
	"sync"
)

// allowlist says what is no secret, although a rule finds it.
type allowlist struct {
	target string // what the expressions are held against: "" the secret, "match" all that matched, "line"
	exprs  []string
	words  string // separated by spaces, lower case: a secret that has one of them is none

	once sync.Once
	re   *regexp.Regexp
	list []string
}

// allowed tells whether the secret, found in the match b[start:end], is none.
func allowed(lists []*allowlist, b []byte, start, end int, secret []byte) bool {
	if !distinct(secret) && allowedAnywhere.has(b, start, end, secret) {
		return true
	}
	for _, a := range lists {
		if a.has(b, start, end, secret) {
			return true
		}
	}
	return false
}

// distinct tells whether nothing of allowedAnywhere can match, whose expressions are slow: they are for true, false and
// null, for one character again and again, and for what begins with one of a few marks. A test holds this against them.
func distinct(secret []byte) bool {
	var folded [512]byte
	if len(secret) == 0 || len(secret) > len(folded) || !alnum.has(secret[0]) {
		return false
	}
	small := folded[:len(secret)]
	same := true
	for i, c := range secret {
		small[i] = lower(c)
		same = same && small[i] == small[0]
	}
	return !same && !bytes.HasPrefix(small, []byte("true")) && !bytes.Contains(small, []byte("false")) && !bytes.HasSuffix(small, []byte("null")) &&
		!bytes.Contains(small, []byte("014df517-")) && !bytes.Contains(small, []byte("abcdefghijklm"))
}

func (a *allowlist) has(b []byte, start, end int, secret []byte) bool {
	a.once.Do(func() {
		if len(a.exprs) > 0 {
			a.re = regexp.MustCompile("(?:" + strings.Join(a.exprs, ")|(?:") + ")")
		}
		a.list = strings.Fields(a.words)
	})
	if a.re != nil {
		target := secret
		switch a.target {
		case "match":
			target = b[start:end]
		case "line": // as far as it is known: the stream may not wait for its end
			from := max(0, start-lookBehind/2)
			target = b[from+bytes.LastIndexByte(b[from:start], '\n')+1 : end]
		}
		if a.re.Match(target) {
			return true
		}
	}
	if len(a.list) > 0 {
		small := bytes.ToLower(secret)
		for _, w := range a.list {
			if bytes.Contains(small, []byte(w)) {
				return true
			}
		}
	}
	return false
}

// entropy is Shannon's, in bits a byte.
func entropy(s []byte) float64 {
	var count [256]int
	for _, c := range s {
		count[c]++
	}
	var h float64
	for _, n := range count {
		if n > 0 {
			f := float64(n) / float64(len(s))
			h -= f * math.Log2(f)
		}
	}
	return h
}
