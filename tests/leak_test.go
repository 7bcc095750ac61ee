package tests

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// declaredSecret has what encoders treat in a special way: both quotes, a backslash, signs of URLs, and more than ASCII.
const declaredSecret = `d3cl@red"'\/+=ökey&<5591>`

// declaredLines is a value of several lines, each of which is a secret by itself.
const declaredLines = "first-line-of-it-2207\n  second line of it 8841\nthird-line/of+it=6603"

const (
	upperCase = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	lowerCase = "abcdefghijklmnopqrstuvwxyz"
	decimals  = "0123456789"
	base62    = upperCase + lowerCase + decimals
)

// shapesOfSecrets make a text of one line with a secret in it; no file of the project holds one.
var shapesOfSecrets = map[string]func(r *rand.Rand) (text, secret string){
	"GitHub":             secretToken("gh"+"p_", 36, base62),
	"GitHub app":         secretToken("gh"+"s_", 36, base62),
	"GitHub fine":        secretToken("github"+"_pat_", 82, base62),
	"GitLab":             secretToken("gl"+"pat-", 20, base62),
	"AWS id":             secretToken("AK"+"IA", 16, upperCase+"234567"),
	"Slack":              secretToken("xo"+"xb-123456789012-123456789012-", 24, base62),
	"Stripe":             secretToken("sk"+"_live_", 24, base62),
	"Anthropic":          secretToken("sk"+"-ant-api03-", 93, base62),
	"Google":             secretToken("AI"+"za", 35, base62),
	"npm":                secretToken("np"+"m_", 36, base62),
	"SendGrid":           secretToken("SG"+".", 66, lowerCase+decimals),
	"Bearer":             secretValue("Authorization: Bearer ", 40, base62, ""),
	"AWS secret":         secretValue("aws_secret_access_key = ", 40, base62, ""),
	"API key":            secretValue("X-Api-Key: ", 32, "0123456789abcdef", ""),
	"client secret":      secretValue(`clientSecret: '`, 40, base62, `',`),
	"signed URL":         secretValue("https://b.example.org/o?X-Amz-Signature=", 64, "0123456789abcdef", ""),
	"password=":          secretPassword("DB_PASSWORD=", ""),
	"password in JSON":   secretPassword(`{"user": "x", "password": "`, `"}`),
	"password in a URL":  secretPassword("postgres://app:", "@db.example.org:5432/x"),
	"password of curl":   secretPassword("curl -s -u deploy:", " https://x"),
	"password, escaped":  secretPassword(`{\"password\":\"`, `\"}`),
	"declared":           declaredForm(func(_ *rand.Rand, s string) string { return s }),
	"declared in base64": declaredForm(inBase64),
	"declared in hex": declaredForm(func(r *rand.Rand, s string) string {
		if h := hex.EncodeToString([]byte(s)); r.IntN(2) == 0 {
			return h
		} else {
			return strings.ToUpper(h)
		}
	}),
	"declared in a URL": declaredForm(func(r *rand.Rand, s string) string {
		if r.IntN(2) == 0 {
			return url.QueryEscape(s)
		}
		return url.PathEscape(s)
	}),
	"declared in JSON": declaredForm(func(r *rand.Rand, s string) string {
		if r.IntN(2) == 0 {
			return toJSON(s)
		}
		escaped, _ := json.Marshal(s)
		return string(escaped)
	}),
	"declared, printed by git": declaredForm(func(_ *rand.Rand, s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "ö", `\303\266`).Replace(s) + `"`
	}),
	"declared, printed by Python": declaredForm(func(_ *rand.Rand, s string) string {
		return `'` + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "ö", `\xf6`).Replace(s) + `'`
	}),
	"a line of a declared one": func(r *rand.Rand) (string, string) {
		lines := strings.Split(declaredLines, "\n")
		s := strings.TrimSpace(lines[r.IntN(len(lines))])
		return s, s
	},
}

func randomText(r *rand.Rand, n int, from string) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = from[r.IntN(len(from))]
	}
	return string(b)
}

// secretToken is a token that its beginning tells. The digit keeps it from being a word by chance.
func secretToken(front string, n int, from string) func(r *rand.Rand) (string, string) {
	return secretValue("", n, from, "", front)
}

func secretValue(before string, n int, from, behind string, front ...string) func(r *rand.Rand) (string, string) {
	return func(r *rand.Rand) (string, string) {
		body := randomText(r, n-8, from) + randomText(r, 2, from[len(from)-6:]) + randomText(r, 6, from)
		s := strings.Join(front, "") + body
		return before + s + behind, body
	}
}

func secretPassword(before, behind string) func(r *rand.Rand) (string, string) {
	return func(r *rand.Rand) (string, string) {
		s := randomText(r, 5, lowerCase) + randomText(r, 1, decimals) + randomText(r, 1, ".^+~") + randomText(r, 5, base62) + "7x"
		return before + s + behind, s
	}
}

func declaredForm(form func(*rand.Rand, string) string) func(r *rand.Rand) (string, string) {
	return func(r *rand.Rand) (string, string) {
		s := form(r, declaredSecret)
		return "value " + s, s
	}
}

// inBase64 is the value in base64 behind none, one or two other bytes, in one of the alphabets.
func inBase64(r *rand.Rand, s string) string {
	s = randomText(r, r.IntN(3), lowerCase) + s + randomText(r, r.IntN(3), lowerCase)
	return []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding}[r.IntN(4)].EncodeToString([]byte(s))
}

// plantedSecrets remembers every secret by its pieces: all of 20 bytes, or the whole where it is shorter. Of a base64 form the
// ends are its neighbours' too, and stay.
type plantedSecrets struct {
	r      *rand.Rand
	pieces map[int]map[string]string // length, piece: shape
	n      map[string]int
}

const pieceBytes = 20

func (p *plantedSecrets) text(shape string) string {
	text, secret := shapesOfSecrets[shape](p.r)
	if strings.Contains(shape, "base64") {
		secret = secret[4 : len(secret)-6]
	}
	n := min(len(secret), pieceBytes)
	if p.pieces[n] == nil {
		p.pieces[n] = map[string]string{}
	}
	for i := 0; i+n <= len(secret); i++ {
		p.pieces[n][secret[i:i+n]] = shape
	}
	p.n[shape]++
	return text
}

// one text of each shape, in random order.
func (p *plantedSecrets) texts() (list []string) {
	shapes := slices.Sorted(maps.Keys(shapesOfSecrets))
	p.r.Shuffle(len(shapes), func(i, j int) { shapes[i], shapes[j] = shapes[j], shapes[i] })
	for _, shape := range shapes {
		list = append(list, p.text(shape))
	}
	return list
}

// find names every shape of which a piece is in text.
func (p *plantedSecrets) find(text string) (shapes []string) {
	found := map[string]bool{}
	for n, pieces := range p.pieces {
		for i := 0; i+n <= len(text); i++ {
			if shape, ok := pieces[text[i:i+n]]; ok && !found[shape] {
				found[shape] = true
				shapes = append(shapes, fmt.Sprintf("%s: …%q", shape, text[max(0, i-60):min(len(text), i+n+20)]))
			}
		}
	}
	return shapes
}

// script prints texts in pieces that are cut anywhere, each by a write of its own, to stdout and then to stderr.
func (p *plantedSecrets) script(out, errs []string) string {
	var b strings.Builder
	for i, text := range []string{strings.Join(out, "\n") + "\n", "first\n" + strings.Join(errs, " | ") + "\n"} {
		for len(text) > 0 {
			n := 1 + p.r.IntN(min(len(text), 40))
			fmt.Fprintf(&b, "printf %%s '%s'%s\n", strings.ReplaceAll(text[:n], "'", `'\''`), []string{"", " >&2"}[i])
			text = text[n:]
		}
	}
	return b.String()
}

// TestNoPlantedSecretIsAnywhere plants 400 secrets of each shape in output that is cut anywhere, in arguments, in texts of
// errors and in names of tools, and some in ids, file names and what else a client may send. Then it searches every byte
// of the data directory, every answer and stderr. $TOOLRUN_SEED draws others.
func TestNoPlantedSecretIsAnywhere(t *testing.T) {
	t.Parallel()
	seed := uint64(1) // each run the same; masking is not perfect, and in time any seed finds a rare form
	if v := os.Getenv("TOOLRUN_SEED"); v != "" {
		fmt.Sscan(v, &seed)
	}
	t.Logf("TOOLRUN_SEED=%d", seed)
	random := &plantedSecrets{r: rand.New(rand.NewPCG(seed, 2)), pieces: map[int]map[string]string{}, n: map[string]int{}}
	p := newPlace(t, `
[secrets]
DECLARED = { env = "DECLARED" }
LINES = { env = "LINES" }
[tools.pieces]
description = "Runs a script, and counts what it got."
command = ["sh", "-c", 'sh "$1"; printf "got %d" "${{#2}"; exit 1', "sh", "{f}", "{note}"]
risk = "READ"
[tools.pieces.params]
f = { type = "string", required = true }
note = { type = "string", required = true }
list = { type = "array", items = "string", dash = true }
[tools.gone]
description = "There is no such program."
command = ["/no/such/program", "{s}"]
risk = "READ"
[tools.gone.params.s]
type = "string"
required = true
[tools.cat]
description = "Prints a file."
command = ["cat", "{f}"]
risk = "READ"
[tools.cat.params.f]
type = "string"
format = "path"
required = true
`)
	p.env = append(p.env, "DECLARED="+declaredSecret, "LINES="+declaredLines)
	const rounds, each = 100, 4
	type round struct {
		file, note string
		refused    []object // params of calls
	}
	plan := make([]round, rounds)
	for i := range plan {
		var out, errs, args []string
		r := round{file: fmt.Sprintf("pieces-%d", i)}
		for range each {
			out, errs, args = append(out, random.texts()...), append(errs, random.texts()...), append(args, random.texts()...)
			r.refused = append(r.refused, object{"name": strings.Join(random.texts(), " | "), "arguments": object{}})
			for some := range slices.Chunk(random.texts(), 8) { // an error names so many
				unknown := object{}
				for _, name := range some {
					unknown[name] = name
				}
				r.refused = append(r.refused, object{"name": "pieces", "arguments": unknown})
			}
		}
		r.note = strings.Join(args, "\n")
		p.write(r.file, random.script(out, errs), 0o644)
		if i%10 == 0 {
			more := random.texts()
			r.refused = append(r.refused,
				object{"name": "gone", "arguments": object{"s": more[0]}},
				object{"name": "cat", "arguments": object{"f": more[1]}},
				object{"name": "cat", "arguments": object{"f": "../" + random.text("Google")}},
				object{"name": "cat", "arguments": more[2]},
				object{"name": more[3], "_meta": object{"toolrun/turn": more[4]}},
				object{"name": "cat", "arguments": object{"f": "x"}, "_meta": object{"toolrun/session_id": more[5], "toolrun/model": more[6], "toolrun/tool_call_id": more[7]}})
		}
		plan[i] = r
	}
	s := p.serve("--log-level", "debug")
	together(t, rounds, func(i int) {
		r := plan[i]
		f := s.call("pieces", object{"f": r.file, "note": r.note})
		if f.Outcome != "exit" || !strings.HasSuffix(f.Stdout, fmt.Sprintf("\ngot %d", len(r.note))) || !strings.HasPrefix(f.Stderr, "first\n") {
			t.Errorf("call %d: %s", i, f.Text)
		}
		s.send(request(100*i+99, strings.Repeat("m", 60)+" "+r.refused[0]["name"].(string), nil))
		if _, err := s.tryAnswer(fmt.Sprint(100*i+99), patience); err != nil {
			t.Error(err)
		}
		for n, params := range r.refused {
			id := fmt.Sprint(100*i + n)
			s.send(request(json.RawMessage(id), "tools/call", params))
			if _, err := s.tryAnswer(id, patience); err != nil {
				t.Error(err)
			}
		}
	})
	s.stdin.Close()
	s.wait(patience)
	least := 4 * rounds * each
	for shape := range shapesOfSecrets {
		least = min(least, random.n[shape])
	}
	s.mu.Lock()
	answers := strings.Join(s.lines, "")
	s.mu.Unlock()
	read := 0
	search := func(where, text string) {
		read += len(text)
		for _, leak := range random.find(text) {
			t.Errorf("%s: %s", where, leak)
		}
	}
	search("an answer", answers)
	search("stderr", s.stderr.String())
	err := filepath.WalkDir(p.data, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !t.Failed() {
			search(path+" (its name)", d.Name())
			search(path, readFile(t, path))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	rows := p.rows()
	if len(rows) < rounds+5*rounds*each || len(shapesOfSecrets) < 20 || least < 4*400 {
		t.Errorf("%d rows, %d shapes, %d of one", len(rows), len(shapesOfSecrets), least)
	}
	unmarked := slices.IndexFunc(rows, func(r row) bool {
		return r.Redactions == 0 && (r.ToolName == "pieces" && r.Outcome == "exit" || r.Outcome == "unknown_tool")
	})
	if unmarked >= 0 {
		t.Errorf("nothing was masked in %s", rows[unmarked].raw)
	}
	t.Logf("%d shapes, %d calls, %d bytes searched", len(shapesOfSecrets), len(rows), read)
}
