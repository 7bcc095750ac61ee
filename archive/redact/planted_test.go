package redact

import (
	stdbase64 "encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// made of letters and digits, by chance.
type planter struct{ r *rand.Rand }

func (p planter) some(n int, from string) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = from[p.r.IntN(len(from))]
	}
	return string(b)
}

const (
	hexDigits = "0123456789abcdef"
	letters   = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	base62    = letters + "0123456789"
	base64url = base62 + "-_"
)

// plants return a text and the secret in it, as it stands there.
var plants = map[string]func(p planter) (text, secret string){
	"sk-":     func(p planter) (string, string) { s := "sk-" + p.some(48, base62); return s, s },
	"sk-ant-": func(p planter) (string, string) { s := "sk-ant-api03-" + p.some(93, base64url) + "AA"; return s, s },
	"Bearer":  func(p planter) (string, string) { s := p.some(40, base64url); return "Authorization: Bearer " + s, s },
	"AWS key id": func(p planter) (string, string) {
		s := "AKIA" + p.some(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
		return s, s
	},
	"AWS secret": func(p planter) (string, string) {
		s := p.some(40, base62+"+/")
		return "aws_secret_access_key = " + s, s
	},
	"GitHub": func(p planter) (string, string) {
		s := "gh" + p.some(1, "pousr") + "_" + p.some(36, base62)
		return s, s
	},
	"GitHub fine": func(p planter) (string, string) {
		s := "github_pat_" + p.some(22, base62) + "_" + p.some(59, base62)
		return s, s
	},
	"Slack": func(p planter) (string, string) {
		s := "xoxb-" + p.some(11, "0123456789") + "-" + p.some(11, "0123456789") + "-" + p.some(24, base62)
		return s, s
	},
	"GitLab": func(p planter) (string, string) { s := "glpat-" + p.some(20, base64url); return s, s },
	"Google": func(p planter) (string, string) { s := "AIza" + p.some(35, base64url); return "key=" + s + " ", s },
	"Stripe": func(p planter) (string, string) { s := "sk_live_" + p.some(24, base62); return s, s },
	"npm": func(p planter) (string, string) {
		s := "npm_" + p.some(36, base62)
		return "//registry/:_authToken=" + s, s
	},
	"PyPI": func(p planter) (string, string) { s := "pypi-AgEIcHlwaS5vcmc" + p.some(80, base64url); return s, s },
	"SendGrid": func(p planter) (string, string) {
		s := "SG." + p.some(22, base64url) + "." + p.some(43, base64url)
		return "k=" + s + "\n", s
	},
	"Twilio":         func(p planter) (string, string) { s := "SK" + p.some(32, hexDigits); return s, s },
	"DigitalOcean":   func(p planter) (string, string) { s := "dop_v1_" + p.some(64, hexDigits); return s, s },
	"Hugging Face":   func(p planter) (string, string) { s := "hf_" + p.some(34, letters); return s, s },
	"Vault":          func(p planter) (string, string) { s := "hvs." + p.some(95, base64url); return s, s },
	"Heroku by name": func(p planter) (string, string) { s := uuidOf(p); return "HEROKU_API_KEY=" + s + "\n", s },
	"Twitter by name": func(p planter) (string, string) {
		s := p.some(50, "abcdefghijklmnopqrstuvwxyz0123456789")
		return "twitter_secret: \"" + s + "\"", s
	},
	"JWT": func(p planter) (string, string) {
		body := stdbase64.RawURLEncoding.EncodeToString([]byte(`{"sub":"` + p.some(30, base62) + `"}`))
		s := stdbase64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256"}`)) + "." + body + "." + p.some(43, base64url)
		return s, s
	},
	"private key": func(p planter) (string, string) {
		s := p.some(64, base62+"+/") + "\n" + p.some(64, base62+"+/") + "\n" + p.some(30, base62+"+/") + "=="
		return "-----BEGIN RSA PRIVATE KEY-----\n" + s + "\n-----END RSA PRIVATE KEY-----", s
	},
	"key cut off": func(p planter) (string, string) {
		s := p.some(64, base62+"+/") + "\n" + p.some(30, base62)
		return "-----BEGIN PRIVATE KEY-----\n" + s + "\n", s
	},
	"password=":        func(p planter) (string, string) { s := word8(p); return "DB_PASSWORD=" + s + "\n", s },
	"password in YAML": func(p planter) (string, string) { s := word8(p); return "  password: " + s + "\n", s },
	"password in JSON": func(p planter) (string, string) { s := word8(p); return `{"user": "x", "password": "` + s + `"}`, s },
	"password in a form": func(p planter) (string, string) {
		s := word8(p)
		return "POST /login user=x&password=" + s + "&next=/", s
	},
	"--password": func(p planter) (string, string) { s := word8(p); return "mysql --password " + s + " db", s },
	"URL": func(p planter) (string, string) {
		s := word8(p)
		return "postgres://app:" + s + "@db.example.org:5432/x", s
	},
	"URL, escaped": func(p planter) (string, string) {
		s := url.QueryEscape(word8(p) + "/?@")
		return "https://app:" + s + "@example.org/", s
	},
	"basic auth": func(p planter) (string, string) {
		s := stdbase64.StdEncoding.EncodeToString([]byte("deploy:" + word8(p)))
		return "Authorization: Basic " + s, s
	},
	"curl -u":       func(p planter) (string, string) { s := word8(p); return "curl -s -u deploy:" + s + " https://x", s },
	"api key":       func(p planter) (string, string) { s := p.some(32, hexDigits); return "X-Api-Key: " + s + "\n", s },
	"client secret": func(p planter) (string, string) { s := p.some(40, base62); return `clientSecret: '` + s + `',`, s },
	"signed URL": func(p planter) (string, string) {
		s := p.some(64, hexDigits)
		return "https://b.example.org/o?X-Amz-Expires=60&X-Amz-Signature=" + s, s
	},
	"declared": func(p planter) (string, string) { return declared["A"], declared["A"] },
	"declared base64": func(p planter) (string, string) {
		s := stdbase64.StdEncoding.EncodeToString([]byte(declared["A"]))
		return s, s[:20]
	},
}

func word8(p planter) string {
	return p.some(5, "abcdefghijkmnopqrstuvwxyz") + p.some(1, "23456789") + p.some(1, "!.^+~") + p.some(4, base62) + "7x"
}

func uuidOf(p planter) string {
	h := p.some(32, hexDigits)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// leaks tells whether the secret, or 20 bytes of it, is in the text. With a line end in between, the lines count.
func leaks(text, secret string) bool {
	for line := range strings.SplitSeq(secret, "\n") {
		n := min(len(line), 20)
		for i := 0; i+n <= len(line); i++ {
			if strings.Contains(text, line[i:i+n]) {
				return true
			}
		}
	}
	return false
}

// 37 kinds of secrets, over 400 of each, in output that is cut anywhere, in arguments, and in texts of errors.
func TestPlantedSecretsNeverLeak(t *testing.T) {
	rounds := 410
	if testing.Short() {
		rounds = 40
	}
	rules := New(declared)
	seed := uint64(1) // each run the same; $TOOLRUN_SEED draws others
	if v := os.Getenv("TOOLRUN_SEED"); v != "" {
		fmt.Sscan(v, &seed)
	}
	for name, plant := range plants {
		t.Run(name, func(t *testing.T) {
			p := planter{rand.New(rand.NewPCG(6, seed))}
			for range rounds {
				text, secret := plant(p)
				if digitGroups([]byte(secret)) < 1 && name != "Hugging Face" {
					continue
				}
				front, back := "level=info msg=\"started\" n=12\n", "\nlevel=info msg=\"done\"\n"
				in := front + text + back
				got, n := streamed(t, rules, in, randomCuts(p.r, len(in)))
				if n != 1 || leaks(got, secret) {
					t.Fatalf("seed %d: %q became %q, %d marks", seed, in, got, n)
				}
				if !strings.HasPrefix(got, front) || !strings.HasSuffix(got, back) {
					t.Fatalf("seed %d: the text around changed: %q", seed, got)
				}
				for _, format := range []string{"open %q: no such file", "cat: %s: no such file", "%s:12: no such file", "../%s: no such file", "+%s\n-: no such file"} {
					if msg := rules.Text(fmt.Sprintf(format, text)).String(); leaks(msg, secret) || !strings.HasSuffix(msg, "no such file") {
						t.Fatalf("seed %d: in an error: %q", seed, msg)
					}
				}
				args, err := json.Marshal(map[string]any{"content": in, "list": []any{text, 1.5, nil}, "deep": map[string]any{"x": map[string]any{text: true}}})
				if err != nil {
					t.Fatal(err)
				}
				stored, err := rules.JSON(args)
				if err != nil || leaks(string(stored.Raw()), secret) || stored.Redactions() != 3 {
					t.Fatalf("seed %d: in arguments: %s, %v", seed, stored.Raw(), err)
				}
				if !jsontext.Value(stored.Raw()).IsValid() || shape(t, args) != shape(t, stored.Raw()) {
					t.Fatalf("seed %d: %s has another shape", seed, stored.Raw())
				}
			}
		})
	}
	if len(plants) < 20 {
		t.Error("too few kinds")
	}
}
