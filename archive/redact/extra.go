package redact

import "bytes"

// extras are shapes that the rule file lacks or finds only where it knows the path or the name.
func extras() (list []*anchor) {
	for _, x := range []struct {
		lit   string
		class class
		least int // bytes of the class behind the literal
	}{
		{"ya29.", token, 20},     // Google, access
		{"GOCSPX-", token, 20},   // Google, OAuth client secret
		{"dckr_pat_", token, 20}, // Docker Hub
		{"dckr_oat_", token, 20},
		{"hvs.", token, 24},    // HashiCorp Vault
		{"whsec_", base64, 24}, // Stripe, Svix: webhooks
		{"gsk_", alnum, 40},    // Groq
		{"r8_", alnum, 37},     // Replicate
		{"nvapi-", token, 40},  // NVIDIA
		{"sbp_", alnum, 40},    // Supabase
		{"hf_", alnum, 34},     // Hugging Face, with digits
		{"sq0csp-", token, 40}, // Square, OAuth
		{"figd_", token, 36},   // Figma
		{"tskey-", token, 20},  // Tailscale
		{"xai-", alnum, 60},    // xAI
		{"ATBB", alnum, 32},    // Bitbucket, app password
		{"xoxc-", dashed, 20},  // Slack, browser
		{"xoxd-", token68, 20},
		{"xoxe-", dashed, 20},
		{"ntn_", alnum, 40}, // Notion
		{"lin_oauth_", alnum, 40},
	} {
		r := prefixed(x.lit, x.class, x.least, 16)
		list = append(list, &anchor{lit: []byte(x.lit), edge: true, rule: func(b []byte, at int, final bool) verdict {
			v := r(b, at, final)
			if v.found && (x.lit == "ATBB" || x.lit == "hf_") && (at > 0 && (b[at-1] == '+' || b[at-1] == '/') || digitGroups(b[at:v.span.end]) < 2) {
				return verdict{}
			}
			return v
		}})
	}
	return append(list,
		&anchor{lit: []byte("eyJ"), after: alnumSet, rule: webToken},
		&anchor{lit: []byte("ey"), front: noWord, after: alnumSet, rule: plainToken},
		&anchor{lit: []byte("LS0tLS1CRUdJTi"), rule: encodedKey},
		&anchor{lit: []byte("-u"), after: optionSet, front: spaceSet, rule: func(b []byte, at int, final bool) verdict { return curlUser(b, at, 2, final) }},
		&anchor{lit: []byte("--user"), rule: func(b []byte, at int, final bool) verdict { return curlUser(b, at, 6, final) }},
		&anchor{lit: []byte("signature="), fold: true, rule: signature},
		&anchor{lit: []byte("sig="), rule: signature},
		&anchor{lit: []byte(":AA"), after: ranges("--09AZ__az"), rule: telegram},
		&anchor{lit: []byte("_mmk"), rule: maxMind},
		&anchor{lit: []byte("facebook"), fold: true, rule: facebook},
		&anchor{lit: []byte("Q~"), front: digitSet, after: azureSet, rule: azure},
		&anchor{lit: []byte("data:"), rule: kubeYAML},
		&anchor{lit: []byte("Data:"), rule: kubeYAML},
		&anchor{lit: []byte(`ata":`), rule: kubeJSON},
	)
}

var (
	spaceSet  = ranges("\t\r  ")
	digitSet  = ranges("09")
	azureSet  = ranges("-.09AZ__az~~")
	alnumSet  = ranges("09AZaz")
	optionSet = ranges("  \t\t==\"\"''$$09AZ__az")
)

// signature judges SIGNATURE=… of a signed URL or request: who has it can do what was signed.
func signature(b []byte, at int, final bool) verdict {
	from := at + bytes.IndexByte(b[at:], '=') + 1
	if from-at == len("sig=") && (at == 0 || b[at-1] != '?' && b[at-1] != '&' && b[at-1] != ';') {
		return verdict{}
	}
	i := from
	for i < len(b) && i-from < bareMax && (token68.has(b[i]) || b[i] == '%') {
		i++
	}
	if i == len(b) && !final && i-from < bareMax {
		return verdict{more: true, from: from}
	}
	if i-from < 32 || !made(b[from:i]) {
		return verdict{}
	}
	return verdict{found: true, span: span{start: from, end: i, class: token68}}
}

// telegram judges the token of a bot: its number, a colon, AA and 33 characters; the number stays.
func telegram(b []byte, at int, final bool) verdict {
	digits := at
	for digits > 0 && at-digits <= 10 && digit(b[digits-1]) {
		digits--
	}
	if n := at - digits; n < 8 || n > 10 {
		return verdict{}
	}
	from := at + 1
	end := token.end(b[:min(len(b), from+36)], from)
	if end == len(b) && end-from < 36 && !final {
		return verdict{more: true, from: from}
	}
	if end-from != 35 {
		return verdict{}
	}
	return verdict{found: true, span: span{start: from, end: end}}
}

// azure judges the secret of an application in Entra ID: 3 characters, a digit, Q~ and 31 to 34 more. Nothing tells the
// first four, which stay.
func azure(b []byte, at int, final bool) verdict {
	const least, most = 31, 34
	from := at + len("Q~")
	end := run(azureSet, b, from, most+1)
	if end == len(b) && end-from <= most && !final {
		return verdict{more: true, from: at}
	}
	if n := end - from; n < least || n > most || at < 4 || run(azureSet, b, at-4, 4) != at || entropy(b[at-4:end]) <= 3 {
		return verdict{}
	}
	if at > 4 && (azureSet[b[at-5]] || b[at-5] == '/') {
		return verdict{}
	}
	return verdict{found: true, span: span{start: at, end: end}}
}

// facebook judges an access token behind the word: the number of an app, | or %, and its secret.
func facebook(b []byte, at int, final bool) verdict {
	const words, least, most = 40, 27, 40
	i := at + len("facebook")
	from := i
	for i < len(b) && i-from < words && !digit(b[i]) && b[i] != '\n' {
		i++
	}
	start := i
	for i < len(b) && i-start < 17 && digit(b[i]) {
		i++
	}
	if i == len(b) && !final {
		return verdict{more: true, from: start}
	}
	if n := i - start; n < 15 || n > 16 || i == len(b) || b[i] != '|' && b[i] != '%' {
		return verdict{}
	}
	end := token.end(b[:min(len(b), i+most+2)], i+1)
	if end == len(b) && end-i-1 <= most && !final {
		return verdict{more: true, from: start}
	}
	if n := end - i - 1; n < least || n > most {
		return verdict{}
	}
	return verdict{found: true, span: span{start: start, end: end}}
}

// The key of MaxMind is 6 letters and digits, _, 29 letters and digits, _mmk: nothing at its begin tells it. What stands
// behind the first _ is held back as long as it could become one, so the rule may mask what is in front of its anchor.
const (
	mmkFront = 6 + len("_")
	mmkBody  = 29
)

func maxMind(b []byte, at int, final bool) verdict {
	start := at - mmkFront - mmkBody
	end := at + len("_mmk")
	if end == len(b) && !final {
		return verdict{more: true, from: at}
	}
	if start < 0 || end < len(b) && word.has(b[end]) || !mmk(b[start:at]) || !edge(b, start) {
		return verdict{}
	}
	return verdict{found: true, span: span{start: start + mmkFront, end: end}}
}

// mmk tells whether s is the begin of such a key, at least its front.
func mmk(s []byte) bool {
	if len(s) < mmkFront || alnum.end(s, 0) != mmkFront-1 || s[mmkFront-1] != '_' {
		return false
	}
	body := alnum.end(s, mmkFront)
	if body == len(s) {
		return body <= mmkFront+mmkBody
	}
	return body == mmkFront+mmkBody && bytes.HasPrefix([]byte("_mmk"), s[body:])
}

// held returns where at the end of b that may begin which no anchor tells; len(b) if nowhere.
func held(b []byte) int {
	start := len(b)
	for start > 0 && len(b)-start <= mmkFront+mmkBody+4 && word.has(b[start-1]) {
		start--
	}
	// An escape in front may count as an edge, too.
	for ; start < len(b); start++ {
		if mmk(b[start:]) && edge(b, start) {
			return start + mmkFront
		}
	}
	return len(b)
}
