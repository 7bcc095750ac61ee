package redact

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// secret values declared in tests.
var declared = map[string]string{
	"A": "correct horse battery",
	"B": "p@ss\"w\\nrd/+=12345678",
	"C": "{\n  \"user\": \"deploy\",\n  \"password\": \"plainword-long-9931\"\n}",
	"D": "battery-staple-overlaps", // "horse battery" + "battery-staple" overlap in text
	"E": "aaaaaaaaab",
}

// fragments are what random inputs are made of: secrets, beginnings of secrets, and what looks like them.
func fragments() []string {
	key := pemBody(7, 64)
	list := []string{
		"ghp_" + strings.Repeat("A", 36), "ghp_" + strings.Repeat("b1", 20), "ghp_", "gh", "ghs_" + strings.Repeat("A", 35),
		"sk-" + strings.Repeat("a1", 15), "sk-learn-contrib-documentation", "sk-", "task-force-2024-overview-longer", "s",
		"sk-proj-" + strings.Repeat("x", 130) + "1", "Bearer ", "bearer", "Bearer abcdefgh1", "bearer authentication", "Authorization: ",
		"Bearer%20abcdefgh123", "BEARER\t\tZZZZ.YYYY.XXXX", "AKIA" + "ABCDEFGHIJKLMNOP", "AKIA", "ASIA0123456789ABCDEF", "A",
		"github_pat_" + strings.Repeat("Z", 22), "github_", "xoxb-123456789012-abcdef", "xox", "xoxp-",
		"-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n", "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n",
		"-----BEGIN A PRIVATE KEY-----BEGIN B PRIVATE KEY-----BEGIN C PRIVATE KEY--------", "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: x\n\n", "-----", "----", "-", "BEGIN ", " PRIVATE KEY", " BLOCK", "-----BEGIN CERTIFICATE-----\n",
		"Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF0123456789ABCDEF\n\n",
		key[0], key[1], key[2], key[0][:40], key[3][:11], key[1] + key[2] + key[3], "\n", "\n", "\n", `\n`, `\\n`, "\r\n", `"`, "' + '", " ", " ", "\t", "\\", "+",
		"=AbCd", "/usr/lib/go/src/crypto/tls/testdata/key", "word", "12\t", "2024-11-30T18:05:12Z ", "\x1b[31m", "\x1b[0m", "%3D", `\u000a`, "=", ":", "é", "\xff", "\x00", Mark, "[", "[RED",
		strings.Repeat(" ", 90), strings.Repeat("x", 300), strings.Repeat("/", 70),
	}
	list = append(list, assignments...)
	for _, v := range declared {
		for _, f := range forms(v) {
			list = append(list, f)
			if len(f) > 2 {
				list = append(list, f[:len(f)/2], f[len(f)/2:])
			}
		}
	}
	return list
}

// assignments are names, signs, quotes and values, whole and in pieces, and the other shapes that span several words.
var assignments = []string{
	"DB_PASSWORD=hunter2x", "password: hunter2x\n", `"password": "hunter2x",`, `{\"password\":\"hunter2x\"}`, "--password hunter2x ", "--token=", "<password>hunter2x</password>", "api key: ",
	"X-Api-Key: 9f8a7b6c5d4e3f2a", "pwd=S3cur3x;Server=y", "Authorization: Basic ", "dXNlcjpodW50ZXIyeA==", "Authorization: token ", "Cookie: a=b; session=9f8a7b6c5d4e3f2a9f8a; ", "Set-Cookie: ",
	"postgres://app:", "letm31n", "@db:5432/x", "https://", "user:", "p@ss/w0rd9", "@host/", "curl ", " -u bob:hunter2x ", "--user ", "machine x login y password h2unterx\n",
	"password", "secret", "token", "key", "_KEY", "auth", "=", " = ", ": ", ":=", "=>", `"`, `\"`, "'", ",", ";", "&", "(", ")", "${X}", "9f8a7b6c", "5d4e3f2a", "hunter2x", "aB3", ".", "..", "-",
	"eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxMjM0NTY3ODkwIn0", ".dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U", "eyJ", "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQ", "LS0tLS1CRUdJTi",
	"X-Amz-Signature=fe5f80f77d5fa3beca038a248ff027d0445342fe2855ddc963176630326f1024", "&sig=", "12345678:AAF0aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1v", "abcDE1_aBcDeFgHiJkLmNoPqRsTuVwXyZ012_mmk", "abcDE1_", "aBcDeFgHiJkLmNoPqRsTuVwXyZ012", "_mmk",
	"apiVersion: v1\nkind: Secret\ndata:\n  a: YmFyYmFyYmFy\n  b: |\n    Zm9v\n    YmFy\nmetadata:\n", "apiVersion: v1\ndata:\n  a: YmFyYmFyYmFy\n", "kind: Secret\n", "\ndata:\n", "  x: y\n", "---\n",
	`{"apiVersion": "v1", "data": {"a": "YmFyYmFyYmFy", "b": "Zm9vZm9v"}, "kind": "Secret"}`, `"data": {"a": "YmFy`, `"},`, `"kind": "Secret"`, `<add key="Password" value="geheim1234" />`,
	"heroku_key = ", "123e4567-e89b-12d3-a456-426614174000", "twitter", "facebook 1308742762612587|rhoK1cbv0DOU_RTX_87O4MkX7AI", "lob: ", "live_", "0123456789abcdef0123456789abcdef012",
}

// pemBody returns lines of base64 as a key has them.
func pemBody(n, width int) []string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	r := rand.New(rand.NewPCG(7, uint64(n)))
	var list []string
	for range n {
		var b strings.Builder
		for range width {
			b.WriteByte(alphabet[r.IntN(64)])
		}
		list = append(list, b.String())
	}
	return list
}

// streamed redacts s cut at the given places.
func streamed(t *testing.T, r *Rules, s string, cuts []int) (string, int) {
	t.Helper()
	var b strings.Builder
	st := r.Stream(func(p Bytes) error { b.Write(p.Raw()); return nil })
	from := 0
	for _, c := range append(cuts, len(s)) {
		if n, err := st.Write([]byte(s[from:c])); n != c-from || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
		from = c
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), st.Redactions()
}

func randomInput(r *rand.Rand, list []string) string {
	var b strings.Builder
	for range 1 + r.IntN(12) {
		b.WriteString(list[r.IntN(len(list))])
		if r.IntN(4) == 0 {
			b.WriteByte(byte(r.IntN(256)))
		}
	}
	return b.String()
}

func randomCuts(r *rand.Rand, n int) []int {
	var cuts []int
	switch step := 0; r.IntN(4) {
	case 0: // every byte
		for i := range n {
			cuts = append(cuts, i)
		}
	default:
		limit := 1 << (1 + r.IntN(8))
		for step < n {
			cuts = append(cuts, step)
			step += r.IntN(limit)
			if step == 0 {
				step++
			}
		}
	}
	return cuts
}

func TestAnyCuttingEqualsTheWhole(t *testing.T) {
	rules := New(declared)
	list := fragments()
	rounds := 8000
	if testing.Short() {
		rounds = 3000
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(1, seed))
	masked := 0
	for range rounds {
		rules := rules.Shapes(r.IntN(8) > 0)
		in := randomInput(r, list)
		want := rules.Text(in)
		masked += want.Redactions()
		cuts := randomCuts(r, len(in))
		if got, n := streamed(t, rules, in, cuts); got != want.String() || n != want.Redactions() {
			t.Fatalf("seed %d\n in  %q\ncuts %v\n got %q %d\nwant %q %d", seed, in, cuts, got, n, want, want.Redactions())
		}
		for name, v := range declared {
			if strings.Contains(want.String(), v) {
				t.Fatalf("seed %d: %s survives in %q of %q", seed, name, want, in)
			}
		}
	}
	if masked < rounds {
		t.Errorf("only %d marks in %d inputs: the inputs test nothing", masked, rounds)
	}
}

// The same with the texts that the rule file's rules are tested with: each rule has its chance.
func TestAnyCuttingOfSamplesEqualsTheWhole(t *testing.T) {
	list := allSamples(t)
	rules := New(nil)
	rounds := len(list) / 2
	if testing.Short() {
		rounds = len(list) / 8
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(4, seed))
	few := assignments
	marks, total := 0, 0
	for i := range rounds {
		in := list[i%len(list)].Text
		if len(in) > 4096 {
			continue
		}
		if r.IntN(2) == 0 {
			in = few[r.IntN(len(few))] + in + few[r.IntN(len(few))] + list[r.IntN(len(list))].Text
		}
		want := rules.Text(in)
		marks += want.Redactions()
		total++
		cuts := randomCuts(r, len(in))
		if got, n := streamed(t, rules, in, cuts); got != want.String() || n != want.Redactions() {
			t.Fatalf("seed %d\n in  %q\ncuts %v\n got %q %d\nwant %q %d", seed, in, cuts, got, n, want, want.Redactions())
		}
	}
	if marks < total {
		t.Errorf("only %d marks in %d inputs", marks, total)
	}
}

func TestEveryTwoCutsOfEveryFragment(t *testing.T) {
	rules := New(declared)
	for _, f := range fragments() {
		in := "x " + f + " y"
		want := rules.Text(in).String()
		for i := range in {
			if got, _ := streamed(t, rules, in, []int{i}); got != want {
				t.Fatalf("cut at %d of %q: %q, want %q", i, in, got, want)
			}
		}
	}
}

func FuzzCuts(f *testing.F) {
	for _, s := range fragments() {
		f.Add(s+"\n", uint64(1))
	}
	rules := New(declared)
	f.Fuzz(func(t *testing.T, in string, seed uint64) {
		want := rules.Text(in)
		cuts := randomCuts(rand.New(rand.NewPCG(2, seed)), len(in))
		if got, n := streamed(t, rules, in, cuts); got != want.String() || n != want.Redactions() {
			t.Fatalf("cuts %v: %q %d, want %q %d", cuts, got, n, want, want.Redactions())
		}
	})
}

func TestHoldBackIsBounded(t *testing.T) {
	rules := New(declared)
	longest := 0
	for _, v := range declared {
		for _, f := range forms(v) {
			longest = max(longest, len(f))
		}
	}
	for name, unit := range map[string]string{
		"token":  "sk-a1" + strings.Repeat("b", 1<<20),
		"bearer": "Bearer 1" + strings.Repeat("b", 1<<20),
		"key":    "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(pemBody(1, 64)[0]+"\n", 1<<14),
		"line":   "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(pemBody(1, 64)[0], 1<<14),
		"gaps":   "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(pemBody(1, 64)[0]+strings.Repeat(" ", 70), 1<<13),
		"almost": strings.Repeat("aaaaaaaaa", 1<<17),
		"dashes": strings.Repeat("-", 1<<20),
		"spaces": "Bearer" + strings.Repeat(" ", 1<<20),
		"value":  "PASSWORD=" + strings.Repeat("h1", 1<<19),
		"quoted": `"password": "` + strings.Repeat("h1", 1<<19),
		"web":    "eyJ" + strings.Repeat("h1", 1<<19),
		"url":    "https://user:" + strings.Repeat("h1", 1<<19),
		"kube":   "kind: Secret\ndata:\n" + strings.Repeat("  a: YWRtaW4=\n", 1<<16),
		"map":    "data:\n" + strings.Repeat("  a: YWRtaW4=\n", 1<<16),
	} {
		t.Run(name, func(t *testing.T) {
			s := rules.Stream(func(Bytes) error { return nil })
			for i := 0; i < len(unit); i += 1000 {
				s.Write([]byte(unit[i:min(len(unit), i+1000)]))
				if held := len(s.scan.buf); held > lookBehind+max(longest, kubeWindow)+pemWindow {
					t.Fatalf("%d bytes held back after %d", held, i)
				}
				if n := len(s.scan.spans); n > kubeWindow/8 {
					t.Fatalf("%d matches held back after %d", n, i)
				}
			}
		})
	}
}

// What comes in pieces has to show at once: but for a few letters that may begin a token, nothing waits.
func TestInnocentEndsAreNotHeldBack(t *testing.T) {
	rules := New(declared)
	for _, in := range []string{"Password: ", "12 of", "done\n", "taken", "[y/N] ", "token=", "https://", "user@host:~$ "} {
		var b strings.Builder
		s := rules.Stream(func(p Bytes) error { b.Write(p.Raw()); return nil })
		s.Write([]byte(in))
		if held := len(in) - b.Len(); held > 3 || held > 0 && !alnum.has(in[len(in)-1]) {
			t.Errorf("of %q only %q came out before Close", in, b.String())
		}
	}
}

func TestFirstErrorOfEmitEndsTheStream(t *testing.T) {
	full := fmt.Errorf("disk full")
	calls := 0
	s := New(nil).Stream(func(Bytes) error { calls++; return full })
	for range 3 {
		if _, err := s.Write([]byte("text ")); err != full {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != full || calls != 1 {
		t.Fatalf("Close = %v after %d calls", err, calls)
	}
}
