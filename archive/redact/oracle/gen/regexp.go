package main

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
)

const (
	maxLiterals = 24
	enough      = 5 // a literal of this length is not made longer where that makes more of them
)

// begins returns literals, in small letters if fold, such that each match of re begins with one of them.
func begins(re *syntax.Regexp) (lits []string, fold bool) {
	list, _, fold := prefixes(re)
	for i := range list {
		list[i] = list[i][:min(len(list[i]), 16)]
		if fold {
			list[i] = strings.ToLower(list[i])
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	// A literal that begins with another one is found with it.
	var out []string
	for _, s := range list {
		if n := len(out); n == 0 || !strings.HasPrefix(s, out[n-1]) {
			out = append(out, s)
		}
	}
	return out, fold
}

// prefixes returns what the matches of re begin with; exact if they are no longer than that.
func prefixes(re *syntax.Regexp) (list []string, exact, fold bool) {
	switch re.Op {
	case syntax.OpLiteral:
		fold = re.Flags&syntax.FoldCase != 0 && strings.ToLower(string(re.Rune)) != strings.ToUpper(string(re.Rune))
		return []string{string(re.Rune)}, true, fold
	case syntax.OpCharClass:
		runes := ascii(re)
		folded := map[rune]bool{}
		for _, r := range runes {
			folded[lower(r)] = true
		}
		if len(folded) > 10 {
			return []string{""}, false, false
		}
		if len(folded) < len(runes) { // a letter in either case
			for r := range folded {
				list = append(list, string(r))
			}
			return list, true, true
		}
		for _, r := range runes {
			list = append(list, string(r))
		}
		return list, true, false
	case syntax.OpCapture:
		return prefixes(re.Sub[0])
	case syntax.OpConcat:
		list, exact = []string{""}, true
		for _, sub := range re.Sub {
			more, e, f := prefixes(sub)
			if len(list)*len(more) > maxLiterals || len(more) > 1 && shortest(list) >= enough || !e && slices.Contains(more, "") {
				return list, false, fold
			}
			var next []string
			for _, a := range list {
				for _, b := range more {
					next = append(next, a+b)
				}
			}
			list, fold = next, fold || f
			if !e {
				return list, false, fold
			}
		}
		return list, true, fold
	case syntax.OpAlternate:
		exact = true
		for _, sub := range re.Sub {
			more, e, f := prefixes(sub)
			list = append(list, more...)
			exact, fold = exact && e, fold || f
		}
		return list, exact, fold
	case syntax.OpQuest:
		if list, exact, fold = prefixes(re.Sub[0]); exact {
			return append(list, ""), true, fold
		}
	}
	return []string{""}, false, false
}

// tailOf tells whether re is one of the literals and then bytes of one class.
func tailOf(re *syntax.Regexp, lits []string, fold bool) (least, most int, set string, ok bool) {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	if re.Op != syntax.OpConcat || len(re.Sub) < 2 {
		return 0, 0, "", false
	}
	n := len(re.Sub) - 1
	last := re.Sub[n]
	if last.Op != syntax.OpRepeat || last.Sub[0].Op != syntax.OpCharClass {
		return 0, 0, "", false
	}
	front := &syntax.Regexp{Op: syntax.OpConcat, Sub: re.Sub[:n], Flags: re.Flags}
	list, exact, folded := prefixes(front)
	if !exact || folded != fold || len(list) != len(lits) {
		return 0, 0, "", false
	}
	for i := range list {
		if fold {
			list[i] = strings.ToLower(list[i])
		}
		if !slices.Contains(lits, list[i]) {
			return 0, 0, "", false
		}
	}
	least, most = lengths(last)
	return least, most, bytesOf(last), true
}

// needed returns punctuation that each match has somewhere behind its literal.
func needed(re *syntax.Regexp, lits []string) string {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	if re.Op != syntax.OpConcat {
		return ""
	}
	longest := 0
	for _, l := range lits {
		longest = max(longest, len(l))
	}
	var b strings.Builder
	offset := 0
	for _, sub := range re.Sub {
		if sub.Op == syntax.OpLiteral && offset >= longest {
			for _, r := range sub.Rune {
				if strings.ContainsRune(".-_@/", r) && !strings.ContainsRune(b.String(), r) {
					b.WriteRune(r)
				}
			}
		}
		least, _ := lengths(sub)
		offset += least
	}
	return b.String()
}

// lengths returns the least and the greatest length of a match; 0 for no bound.
func lengths(re *syntax.Regexp) (least, most int) {
	const unbounded = 1 << 20
	var of func(re *syntax.Regexp) (int, int)
	of = func(re *syntax.Regexp) (int, int) {
		switch re.Op {
		case syntax.OpLiteral:
			return len(re.Rune), len(re.Rune)
		case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
			return 1, 1
		case syntax.OpCapture:
			return of(re.Sub[0])
		case syntax.OpConcat:
			a, b := 0, 0
			for _, s := range re.Sub {
				x, y := of(s)
				a, b = a+x, b+y
			}
			return a, b
		case syntax.OpAlternate:
			a, b := unbounded, 0
			for _, s := range re.Sub {
				x, y := of(s)
				a, b = min(a, x), max(b, y)
			}
			return a, b
		case syntax.OpStar:
			return 0, unbounded
		case syntax.OpPlus:
			x, _ := of(re.Sub[0])
			return x, unbounded
		case syntax.OpQuest:
			_, y := of(re.Sub[0])
			return 0, y
		case syntax.OpRepeat:
			x, y := of(re.Sub[0])
			if re.Max < 0 {
				return x * re.Min, unbounded
			}
			return x * re.Min, y * re.Max
		}
		return 0, 0
	}
	least, most = of(re)
	if most >= unbounded {
		most = 0
	}
	return least, most
}

// bytesOf returns the ASCII bytes that matches consist of, as ranges: "azAZ--" stands for a-z, A-Z and -.
func bytesOf(re *syntax.Regexp) string {
	var has [128]bool
	var walk func(re *syntax.Regexp)
	walk = func(re *syntax.Regexp) {
		for _, r := range ascii(re) {
			has[r] = true
		}
		for _, s := range re.Sub {
			walk(s)
		}
	}
	walk(re)
	var b strings.Builder
	for c := 0; c < 128; c++ {
		if !has[c] {
			continue
		}
		from := c
		for c+1 < 128 && has[c+1] {
			c++
		}
		fmt.Fprintf(&b, "%c%c", from, c)
	}
	return b.String()
}

// ascii returns the ASCII characters of a literal or a class.
func ascii(re *syntax.Regexp) (list []rune) {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			list = append(list, r)
			if re.Flags&syntax.FoldCase != 0 {
				list = append(list, lower(r), []rune(strings.ToUpper(string(r)))[0])
			}
		}
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1] && r < 128; r++ {
				list = append(list, r)
			}
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		for r := rune(0); r < 128; r++ {
			if r != '\n' || re.Op == syntax.OpAnyChar {
				list = append(list, r)
			}
		}
	}
	return list
}

func lower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}
