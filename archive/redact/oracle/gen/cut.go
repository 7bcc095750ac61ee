package main

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// part is a rule, or one alternative of a rule, as the scanner takes it.
type part struct {
	mode   string   // byToken: from a literal on; byName: from a name on; byValue: so too, but found by its value
	expr   string   // without what stands in front of and behind the match
	lits   []string // what the match begins with or its value does (byValue)
	fold   bool     // the literals in either case
	edge   bool     // no word goes on at the begin
	closed bool     // no word goes on at the end
	min    int      // length of the match (byToken) or of the value
	max    int      // 0: unbounded
	set    string   // bytes that the match (byToken) or the value consists of, as ranges
	tail   string   // the match is a literal and then min to max bytes of this, counted without the literal
	need   string   // bytes that a match has behind its literal
	near   []string // byValue: what the name begins with, in small letters
	err    error
}

// What the rule file's own generator puts around names and values (cmd/generate/config/utils/generate.go).
const (
	middle    = `(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}`
	middleBis = `(?:[ \t\w.-]{0,20})[\s'"]{0,3})(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}`
	before    = `[\w.-]{0,50}?`
)

var behind = []string{
	`(?:[\x60'"\s;]|\\[nr]|$)`, `(?:[\x60'"\s;]|\\[nr]|$|\b)`, `(?:[^\w-]|\z)`, `(?:[^a-zA-Z0-9+/]|\z)`, `(?:[\/|\#|\?|:]|$)`, `\b`,
}

// byHand names the rules that archive/redact has code for, and those that only a file's path can trigger.
var byHand = map[string]bool{
	"generic-api-key": true, "jwt": true, "private-key": true, "kubernetes-secret-yaml": true, "curl-auth-header": true, "curl-auth-user": true,
	"hashicorp-tf-password": true, "maxmind-license-key": true, "azure-ad-client-secret": true, "sidekiq-sensitive-url": true, "facebook-access-token": true, "pkcs12-file": true,
}

// instead holds other words for rules whose expression has no literal at its begin.
var instead = map[string][]string{
	"hashicorp-tf-api-token": {`(\.atlasv1\.(?i:[a-z0-9\-_=]{60,70}))`},
	"atlassian-api-token": {
		`(?i)[\w.-]{0,50}?(?:(?-i:ATLASSIAN|[Aa]tlassian)|(?-i:CONFLUENCE|[Cc]onfluence)|(?-i:JIRA|[Jj]ira))` + middle + `([a-z0-9]{20}[a-f0-9]{4})(?:[\x60'"\s;]|\\[nr]|$)`,
		`\b(ATATT3[A-Za-z0-9_\-=]{186})(?:[\x60'"\s;]|\\[nr]|$)`,
	},
	"sourcegraph-access-token": {
		`(?i)\b(sgp_(?:[a-fA-F0-9]{16}|local)_[a-fA-F0-9]{40}|sgp_[a-fA-F0-9]{40})\b`,
		`(?i)(?:sourcegraph)` + middle + `([a-f0-9]{40})(?:[\x60'"\s;]|\\[nr]|$)`,
	},
	"slack-webhook-url":         {`hooks\.slack\.com/((?:services|workflows|triggers)/[A-Za-z0-9+/]{43,56})`},
	"microsoft-teams-webhook":   {`\.webhook\.office\.com/(webhookb2/[a-z0-9]{8}-(?:[a-z0-9]{4}-){3}[a-z0-9]{12}@[a-z0-9]{8}-(?:[a-z0-9]{4}-){3}[a-z0-9]{12}/IncomingWebhook/[a-z0-9]{32}/[a-z0-9]{8}-(?:[a-z0-9]{4}-){3}[a-z0-9]{12})`},
	"nuget-config-password":     {`(?i)<add key="(?:(?:ClearText)?Password)"[ \t]{1,8}value="([^"\n]{8,200})"`},
	"freemius-secret-key":       {`(?i)secret_key["'][ \t]{0,8}=>[ \t]{0,8}["'](sk_[^\s"']{29})["']`},
	"slack-config-access-token": {`(?i)xoxe\.xox[bp]-\d-[A-Z0-9]{163,166}`},
}

// cut cuts a rule.
func cut(id, expr string, keywords []string) []part {
	exprs := instead[id]
	if exprs == nil {
		exprs = []string{expr}
	}
	var parts []part
	for _, e := range exprs {
		p := cutOne(e, keywords)
		parts = append(parts, p)
	}
	return parts
}

// namedGroup is a group that only tells which alternative matched.
var namedGroup = regexp.MustCompile(`\(\?P<\w+>`)

func cutOne(expr string, keywords []string) (p part) {
	for _, m := range []string{middle, middleBis} {
		if name, value, ok := strings.Cut(expr, m); ok {
			return named(name, m, value, keywords)
		}
	}
	p.mode = "byToken"
	p.expr, p.edge, p.closed = bare(namedGroup.ReplaceAllString(expr, "(?:"))
	re, err := syntax.Parse(p.expr, syntax.Perl)
	if err != nil {
		return part{err: err}
	}
	p.lits, p.fold = begins(re)
	p.min, p.max = lengths(re)
	p.set = bytesOf(re)
	if least, most, set, ok := tailOf(re, p.lits, p.fold); ok {
		p.min, p.max, p.tail, p.set, p.expr = least, most, set, "", ""
	} else {
		p.need = needed(re, p.lits)
	}
	if shortest(p.lits) < 2 {
		p.err = fmt.Errorf("no literal of 2 bytes at the begin of %q: %q", p.expr, p.lits)
	}
	return p
}

// bare takes off what must stand around a match.
func bare(expr string) (inner string, edge, closed bool) {
	for _, end := range behind {
		if rest, ok := strings.CutSuffix(expr, end); ok {
			expr, closed = rest, true
			break
		}
	}
	flags := ""
	if rest, ok := strings.CutPrefix(expr, "(?i)"); ok {
		flags, expr = "(?i)", rest
	}
	expr, edge = strings.CutPrefix(expr, `\b`)
	return flags + expr, edge, closed
}

func named(name, middle, value string, keywords []string) (p part) {
	name = strings.TrimPrefix(name, before)
	flags := ""
	if rest, ok := strings.CutPrefix(name, "(?i)"); ok {
		flags, name = "(?i)", rest
	}
	group := ""
	if rest, ok := strings.CutPrefix(name, "(?i:"); ok {
		group, name = "(?i:", rest
	}
	name = strings.TrimPrefix(name, before)
	value, _, p.closed = bare(value)
	p.mode = "byName"
	p.expr = flags + group + name + middle + value
	v, err := syntax.Parse(flags+value, syntax.Perl)
	if err != nil {
		return part{err: err}
	}
	flagged := flags
	if group != "" {
		flagged = "(?i)"
	}
	n, err := syntax.Parse(flagged+name, syntax.Perl)
	if err != nil {
		return part{err: err}
	}
	p.min, p.max = lengths(v)
	p.set = bytesOf(v)
	p.lits, p.fold = begins(n)
	ofName := func(k string) bool {
		return slices.ContainsFunc(p.lits, func(l string) bool {
			l, k = strings.ToLower(l), strings.ToLower(k)
			return strings.HasPrefix(l, k) || strings.HasPrefix(k, l)
		})
	}
	if !slices.ContainsFunc(keywords, ofName) {
		p.mode = "byValue"
		for _, l := range p.lits {
			p.near = append(p.near, strings.ToLower(l))
		}
		p.lits, p.fold = begins(v)
	}
	if shortest(p.lits) < 2 {
		p.err = fmt.Errorf("no literal of 2 bytes in %q: %q", p.expr, p.lits)
	}
	return p
}

func shortest(list []string) int {
	n := 1 << 20
	for _, s := range list {
		n = min(n, len(s))
	}
	if len(list) == 0 {
		return 0
	}
	return n
}
