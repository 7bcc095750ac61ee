package redact

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha512"
	stdbase64 "encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// innocents makes text without secrets, of the kinds that tools print.
type innocents struct {
	r *rand.Rand
	b bytes.Buffer
}

func (g *innocents) printf(format string, args ...any) { fmt.Fprintf(&g.b, format, args...) }

func (g *innocents) pick(list ...string) string { return list[g.r.IntN(len(list))] }

func (g *innocents) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.r.Uint32())
	}
	return b
}

func (g *innocents) hex(n int) string { return hex.EncodeToString(g.bytes(n)) }

func (g *innocents) uuid() string {
	h := g.hex(16)
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:]
}

func (g *innocents) word() string {
	return g.pick("token", "parser", "secret", "keyboard", "author", "tokenizer", "passed", "bypass", "monkey", "compass", "cookie", "access", "credential", "session", "worker",
		"bearer", "basic", "private", "linear", "message", "sumo", "twitter", "heroku", "discord", "password", "index", "value", "config", "handler", "twig",
		"netlify", "coinbase", "sentry", "etsy", "okta", "plaid", "bitbucket", "cloudflare", "facebook", "contentful", "intercom", "lob", "xray", "kraken", "travis", "datadog", "looker", "curl", "data", "kind")
}

func (g *innocents) path() string {
	return g.pick("src", "lib", "internal", "pkg") + "/" + g.word() + "/" + g.word() + g.pick(".go", ".py", ".ts", "_test.go", ".rs")
}

func (g *innocents) stamp() string {
	return fmt.Sprintf("2024-%02d-%02dT%02d:%02d:%02d.%03dZ", 1+g.r.IntN(12), 1+g.r.IntN(28), g.r.IntN(24), g.r.IntN(60), g.r.IntN(60), g.r.IntN(1000))
}

var kinds = map[string]func(g *innocents){
	"build log": func(g *innocents) {
		n := g.r.IntN(1000)
		g.printf("[%3d%%] Building CXX object CMakeFiles/%s.dir/%s.o\n", n%100, g.word(), g.path())
		g.printf("%s:%d:%d: warning: unused variable '%s' [-Wunused-variable]\n", g.path(), n, n%80, g.word())
		g.printf("#%d [stage-%d 4/9] RUN --mount=type=secret,id=npmrc npm ci --prefer-offline\n#%d sha256:%s 1.2MB / %dMB\n", n, n%5, n, g.hex(32), n)
		g.printf("Cache restored from key: Linux-go-%s\nCache hit for restore-key: node-cache-Linux-x64-npm-%s\n", g.hex(32), g.hex(32))
		g.printf("   Compiling %s v1.%d.%d (/build/%s)\nmake[%d]: Entering directory '/build/%s-1.%d'\n", g.word(), n, n%7, g.path(), n%4, g.word(), n)
		g.printf("Step %d/12 : ENV TOKEN_FILE=/run/secrets/token PASSWORD_FILE=/run/secrets/db KEY_SIZE=%d\n ---> %s\n", n%12, n, g.hex(6))
	},
	"test log": func(g *innocents) {
		n := g.r.IntN(1000)
		g.printf("=== RUN   Test%sKey%d/case_%d\n--- PASS: Test%sToken%d (0.%02ds)\n", g.word(), n, n, g.word(), n, n%100)
		g.printf("%s::test_%s_token[%s-%d] PASSED [%3d%%]\n", g.path(), g.word(), g.word(), n, n%100)
		g.printf("    %s_test.go:%d: key = %q, want %q; token: unexpected %q\n", g.word(), n, g.word(), g.word(), g.word())
		g.printf("  ✓ should %s the %s when password is too short (%d ms)\nTests: %d passed, %d total; secrets: 0 found; tokens: %d in, %d out\n", g.word(), g.word(), n, n, n, n*11, n*3)
		g.printf("E   AssertionError: assert token == expected_token, password != %s_password, auth: required\n", g.word())
	},
	"go.sum": func(g *innocents) {
		m := g.pick("golang.org/x/oauth2", "cloud.google.com/go/auth", "github.com/"+g.word()+"/"+g.word(), "github.com/hashicorp/go-secure-stdlib/password", "github.com/golang-jwt/jwt/v5", "github.com/zalando/go-keyring")
		g.printf("%s v0.%d.0 h1:%s\n%s v0.%d.0/go.mod h1:%s\n", m, g.r.IntN(99), stdbase64.StdEncoding.EncodeToString(g.bytes(32)), m, g.r.IntN(99), stdbase64.StdEncoding.EncodeToString(g.bytes(32)))
		sum := sha512.Sum512(g.bytes(9))
		g.printf("    \"node_modules/%s-token\": {\n      \"version\": \"1.%d.0\",\n      \"resolved\": \"https://registry.example.org/%s-token/-/%s-token-1.%d.0.tgz\",\n      \"integrity\": \"sha512-%s\"\n    },\n",
			g.word(), g.r.IntN(99), g.word(), g.word(), g.r.IntN(99), stdbase64.StdEncoding.EncodeToString(sum[:]))
		g.printf("%s==2.%d.1 \\\n    --hash=sha256:%s\n", g.word(), g.r.IntN(9), g.hex(32))
	},
	"git log": func(g *innocents) {
		id := sha1.Sum(g.bytes(8))
		g.printf("commit %x\nAuthor: A %s <a.%s@example.org>\nDate:   Mon Nov %d 10:%02d:00 2024 +0100\n\n    %s: rotate the %s key, remove secret from %s\n\n", id, g.word(), g.word(), g.r.IntN(30), g.r.IntN(60), g.word(), g.word(), g.path())
		g.printf("index %s..%s 100644\n--- a/%s\n+++ b/%s\n@@ -%d,7 +%d,9 @@ func %sToken() {\n+\ttoken, err := parse%s(ctx, key)\n-\tpassword := os.Getenv(\"%s_PASSWORD\")\n", g.hex(5), g.hex(5), g.path(), g.path(), g.r.IntN(900), g.r.IntN(900), g.word(), g.word(), strings.ToUpper(g.word()))
		g.printf("%x %s\n * [new branch]      %s-key -> origin/%s-key\n", id, g.path(), g.word(), g.word())
	},
	"hex dump": func(g *innocents) {
		row := g.bytes(16)
		g.printf("%08x  % x  |%s|\n", g.r.IntN(1<<30), row, strings.Map(func(r rune) rune {
			if r < ' ' || r > '~' {
				return '.'
			}
			return r
		}, string([]rune{rune(row[0]), rune(row[1]), rune(row[2]), rune(row[3])})))
		g.printf("%s  %s\nSHA256 (%s) = %s\nMD5:%s\n", g.hex(32), g.path(), g.path(), g.hex(32), g.hex(16))
	},
	"base64": func(g *innocents) {
		text := stdbase64.StdEncoding.EncodeToString(g.bytes(300 + g.r.IntN(3000)))
		g.printf("<img src=\"data:image/png;base64,%s\">\n", text)
		for ; len(text) > 76; text = text[76:] {
			g.printf("%s\n", text[:76])
		}
		g.printf("-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\nssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ%s me@host\n//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjoz%s\n",
			stdbase64.StdEncoding.EncodeToString(g.bytes(48)), strings.TrimRight(stdbase64.StdEncoding.EncodeToString(g.bytes(300)), "="), stdbase64.StdEncoding.EncodeToString(g.bytes(3000)))
	},
	"identifiers": func(g *innocents) {
		g.printf("%s INFO request_id=%s trace_id=%s span_id=%s user=%d session_id=%s\n", g.stamp(), g.uuid(), g.hex(16), g.hex(8), g.r.IntN(1e6), g.uuid())
		g.printf("%s-%s-%s-x7k2p  1/1  Running  0  %dd  10.0.%d.%d  ip-10-0-3-4\n", g.word(), g.word(), g.hex(5), g.r.IntN(99), g.r.IntN(255), g.r.IntN(255))
		g.printf("arn:aws:iam::%012d:role/%s-%d i-%s vol-%s sg-%s\n", g.r.Int64N(1e12), g.word(), g.r.IntN(99), g.hex(8), g.hex(8), g.hex(8))
		g.printf("SHA256:%s me@host (ED25519)\ncontainer %s started, image %s@sha256:%s\n", stdbase64.RawStdEncoding.EncodeToString(g.bytes(32)), g.hex(32), g.word(), g.hex(32))
	},
	"minified JavaScript": func(g *innocents) {
		for range 20 {
			v := g.pick("e", "t", "n", "r", "this", "s", "a.b")
			g.printf("%s.token=%s.token,%s.password=t?n:r.password;function %s(e,t){return e.key===t.key&&e.secret!==t2.secret&&(e.auth=t.auth,e.pass=12)}", v, v, v, g.pick("q", "Zt", "_a1"))
			g.printf("const %sKey=Symbol(\"%sKey\"),tokenType=\"bearer\",%sToken=await get%sToken({key:e.apiKey,secret:t[%d]});", g.word(), g.word(), g.word(), g.word(), g.r.IntN(99))
			g.printf("o.keySelector=n,o.haKey=!1,headers:{Authorization:`Bearer ${t.token}`,\"X-Api-Key\":this.apiKey,cookie:e.headers.cookie};s.getOwnPropertyDescriptors2;")
		}
		g.printf("\n")
	},
	"source": func(g *innocents) {
		g.printf("\tcfg.Password = os.Getenv(\"%s_PASSWORD\")\n\ttoken := req.Header.Get(\"Authorization\")\n\tif password == \"\" || secretKey == nil {\n", strings.ToUpper(g.word()))
		g.printf("    password: str = Field(..., min_length=%d)\n    api_key: Optional[str] = None\n    token = self.tokens[%d]\n    secret_key=settings.SECRET_KEY2, auth=(user, password1)\n", g.r.IntN(99), g.r.IntN(99))
		g.printf("password = \"${DB_PASSWORD}\"\ntoken: \"{{ vault_token_2 }}\"\nsecret: !Ref Secret1\napiKey: <your-api-key-1>\n  secretName: %s-tls-%d\n  key: tls.crt\n", g.word(), g.r.IntN(99))
		g.printf("export interface Login { password: string; token?: string; apiKey: Key2 }\nconst password = document.getElementById('password1').value;\nurl: postgres://user:${PASSWORD}@localhost:5432/db http://localhost:%d/x?token=\n", g.r.IntN(65536))
		g.printf("curl -H \"Authorization: Bearer $TOKEN\" -u \"$USER:$PASSWORD\" https://api.example.org/v1/%s\n--password string   the password to use\n--token TOKEN       see --token-file\n", g.word())
	},
	"JSON": func(g *innocents) {
		g.printf("{\"id\":\"%s\",\"key\":\"PROJ-%d\",\"etag\":\"W/\\\"%s\\\"\",\"sha\":\"%s\",\"node_id\":\"MDQ6VXNlcj%d\",", g.uuid(), g.r.IntN(9999), g.hex(16), g.hex(20), g.r.IntN(1e6))
		g.printf("\"usage\":{\"input_tokens\":%d,\"max_tokens\":4096,\"completion_tokens\":%d},\"next_page_token\":\"CAUQAA%s\",\"token_type\":\"bearer\",", g.r.IntN(1e5), g.r.IntN(1e5), g.hex(4))
		g.printf("\"html_url\":\"https://git.example.org/%s/%s/commit/%s\",\"public_key\":\"%s\",\"has_password\":true,\"secret\":null,\"keys\":[\"a1\",\"b2\"],\"checksum\":\"sha256:%s\",\"ts\":%d}\n",
			g.word(), g.word(), g.hex(20), stdbase64.StdEncoding.EncodeToString(g.bytes(32)), g.hex(32), g.r.Int64N(1e13))
	},
}

// 50 MB of text as tools print it, of every kind alike, and not one byte of it changes.
func TestInnocentTextStaysByteForByte(t *testing.T) {
	size := 50 << 20
	if testing.Short() {
		size = 5 << 20
	}
	rules := New(map[string]string{"A": "correct horse battery"})
	seed := rand.Uint64()
	for name, write := range kinds {
		t.Run(name, func(t *testing.T) {
			g := &innocents{r: rand.New(rand.NewPCG(5, seed))}
			for g.b.Len() < size/len(kinds) {
				write(g)
			}
			in := g.b.Bytes()
			var out bytes.Buffer
			s := rules.Stream(func(b Bytes) error { out.Write(b.Raw()); return nil })
			for i := 0; i < len(in); i += 100_000 {
				s.Write(in[i:min(len(in), i+100_000)])
			}
			s.Close()
			if bytes.Equal(in, out.Bytes()) {
				return
			}
			t.Errorf("seed %d: %d marks in %d bytes", seed, s.Redactions(), len(in))
			shown := 0
			for line := range bytes.Lines(out.Bytes()) {
				if i := bytes.Index(line, mark); i >= 0 && shown < 10 {
					shown++
					t.Logf("%s", line[max(0, i-80):min(len(line), i+40)])
				}
			}
		})
	}
}
