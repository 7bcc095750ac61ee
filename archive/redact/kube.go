package redact

import "bytes"

// kubeWindow is how much of the data of a Kubernetes secret is looked at.
const kubeWindow = 4 << 10

// kubeYAML judges a line "data:" or "stringData:" of YAML, and masks the values below it if the document is of kind
// Secret, which may be said in front of it or behind.
func kubeYAML(b []byte, at int, final bool) (v verdict) {
	start := max(0, at-80)
	if i := bytes.LastIndexByte(b[start:at], '\n'); i >= 0 {
		start += i + 1
	} else if start > 0 {
		return verdict{}
	}
	indent := skipIndent(b, start) - start
	if head := b[start+indent : at]; len(head) > 0 && string(head) != "string" {
		return verdict{}
	}
	i := at + len("data:")
	for i < len(b) && (b[i] == ' ' || b[i] == '\r') && i-at < 16 {
		i++
	}
	if i == len(b) && !final {
		return verdict{more: true, from: i}
	}
	if i == len(b) || b[i] != '\n' {
		return verdict{}
	}
	kind := kindBefore(b[max(0, start-lookBehind/2):start])
	if kind == "other" {
		return verdict{}
	}
	limit := min(len(b), at+kubeWindow)
	first, block, over := 0, 0, 0 // begin of the first value; indentation inside a | block; lines behind the data
	for i++; i < limit; {
		end := bytes.IndexByte(b[i:limit], '\n')
		if end < 0 && limit < at+kubeWindow && !final {
			break
		}
		if end < 0 {
			end = limit - i
		}
		line := b[i : i+end]
		in := skipIndent(line, 0)
		switch text := bytes.TrimRight(line[in:], " \r"); {
		case len(text) == 0:
		case over > 0 || in <= indent:
			if kind != "" || saysSecret(text) {
				return v
			}
			if over++; over > 8 || bytes.HasPrefix(text, []byte("kind:")) || string(text) == "---" {
				return verdict{}
			}
		case block > 0 && in >= block:
			v.add(verdict{found: true, span: span{start: i + in, end: i + in + len(text)}})
		default:
			block = 0
			colon := bytes.Index(text, []byte(": "))
			if colon < 0 {
				break
			}
			value := text[colon+2:]
			if string(value) == "|" || string(value) == "|-" || string(value) == ">" || string(value) == ">-" {
				block = in + 1
				break
			}
			from := i + in + colon + 2
			n := len(value)
			if n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
				from, n = from+1, n-2
			}
			if n > 0 && !bytes.HasPrefix(value, []byte("{{")) {
				m := span{start: from, end: from + n}
				if i+end == at+kubeWindow {
					m.class = base64 // longer than the window
				}
				v.add(verdict{found: true, span: m})
			}
		}
		if first == 0 && v.found {
			first = v.span.start
		}
		i += end + 1
	}
	if !final && limit < at+kubeWindow {
		if first == 0 {
			first = i // no value yet
		}
		return verdict{more: true, from: min(first, len(b))}
	}
	if kind == "" {
		return verdict{}
	}
	return v
}

func skipIndent(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	return i
}

// kindBefore tells what kind the document that ends here says it is: "secret", "other", or "" where it does not say.
func kindBefore(b []byte) string {
	if i := bytes.LastIndex(b, []byte("\n---")); i >= 0 {
		b = b[i:]
	}
	i := bytes.LastIndex(b, []byte("kind:"))
	if i < 0 {
		return ""
	}
	line, _, _ := bytes.Cut(b[i:], []byte{'\n'})
	if saysSecret(line) {
		return "secret"
	}
	return "other"
}

// saysSecret tells whether a line is "kind: Secret".
func saysSecret(line []byte) bool {
	line = bytes.TrimLeft(line, " \t-")
	rest, found := bytes.CutPrefix(line, []byte("kind:"))
	return found && bytes.EqualFold(bytes.Trim(rest, " \t\r\"'"), []byte("secret"))
}

// kubeJSON judges "data": {…} and "stringData": {…} of JSON with "kind": "Secret" near it.
func kubeJSON(b []byte, at int, final bool) (v verdict) {
	i := at + len(`ata":`)
	i = skipSpace(b, i, 4)
	if i < len(b) && b[i] != '{' || i == len(b) && final {
		return verdict{}
	}
	limit := min(len(b), at+kubeWindow)
	from := i
	for i++; i < limit && b[i] != '}'; i++ {
		if b[i] != '"' {
			continue
		}
		end := bytes.IndexByte(b[i+1:limit], '"')
		if end < 0 {
			break
		}
		i += end + 2
		colon := skipSpace(b[:limit], i, 4)
		if colon < limit && b[colon] == ':' {
			value := skipSpace(b[:limit], colon+1, 64)
			if value < limit && b[value] != '"' {
				return verdict{} // not only strings
			}
			if end = bytes.IndexByte(b[min(value+1, limit):limit], '"'); end < 0 {
				i = limit
				break
			}
			if end > 0 {
				v.add(verdict{found: true, span: span{start: value + 1, end: value + 1 + end}})
			}
			i = value + 1 + end
		} else if colon < limit {
			return verdict{}
		}
	}
	more := limit < at+kubeWindow && !final
	if i >= limit || b[i] != '}' {
		if more {
			return verdict{more: true, from: min(from, len(b))}
		}
		return verdict{}
	}
	if !v.found {
		return verdict{}
	}
	secret := []byte(`"Secret"`)
	before := b[max(0, at-lookBehind/2):at]
	if k := bytes.LastIndex(before, []byte(`"kind":`)); k >= 0 {
		if bytes.HasPrefix(bytes.TrimLeft(before[k+len(`"kind":`):], " "), secret) {
			return v
		}
		return verdict{}
	}
	const ahead = 64
	after := b[i:min(len(b), i+ahead)]
	if k := bytes.Index(after, []byte(`"kind":`)); k >= 0 {
		rest := bytes.TrimLeft(after[k+len(`"kind":`):], " ")
		if bytes.HasPrefix(rest, secret) {
			return v
		}
		if len(rest) >= len(secret) {
			return verdict{}
		}
	}
	if len(after) < ahead && !final {
		return verdict{more: true, from: v.begin()}
	}
	return verdict{}
}

func skipSpace(b []byte, i, most int) int {
	for from := i; i < len(b) && i-from < most && space(b[i]); {
		i++
	}
	return i
}
