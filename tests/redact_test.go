package tests

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// token looks like a secret; it is put together here so that no file of the project holds one.
var token = "gh" + "p_" + strings.Repeat("A", 36)

// nowhere fails where a secret, or a long piece of it, is in the data directory, in an answer or on stderr.
func nowhere(t *testing.T, p *place, s *server, secrets ...string) {
	t.Helper()
	s.stdin.Close()
	s.wait(patience)
	s.mu.Lock()
	answers := strings.Join(s.lines, "")
	s.mu.Unlock()
	for _, secret := range secrets {
		if files := grep(p.data, secret); len(files) > 0 {
			t.Errorf("%.12s… is in %v", secret, files)
		}
		if strings.Contains(answers, secret) {
			t.Errorf("%.12s… is in an answer", secret)
		}
		if strings.Contains(s.stderr.String(), secret) {
			t.Errorf("%.12s… is on stderr", secret)
		}
	}
}

func TestSecretCutAnywhereIsMasked(t *testing.T) {
	t.Parallel()
	const assemble = "t=gh; t=${t}p_$(printf %036d 0 | tr 0 A); printf 'before '; "
	p := newPlace(t, shTool)
	s := p.serve()
	together(t, len(token)-1, func(i int) {
		script := fmt.Sprintf("printf %%s $t | head -c %d; sleep 0.05; printf %%s $t | tail -c +%d; echo ' after'", i+1, i+2)
		if f := s.call("sh", sh(assemble+script)); f.Stdout != "before [REDACTED] after\n" {
			t.Errorf("cut after %d bytes: %q", i+1, f.Stdout)
		}
	})
	if f := s.call("sh", sh(assemble+"printf %s $t | head -c 20; printf %s $t | tail -c +21 >&2")); strings.Contains(f.Text, token) {
		t.Errorf("the halves on stdout and stderr were joined: %s", f.Text)
	}
	nowhere(t, p, s, token)
	for _, r := range p.rows()[:len(token)-1] {
		if r.Redactions == 0 {
			t.Errorf("redactions is 0: %s", r.raw)
		}
		if strings.Contains(p.object(*r.OutputHash), strings.Repeat("A", 20)) {
			t.Errorf("a piece of the secret is in the output of %s", r.ToolCallID)
		}
	}
}

func TestSecretsInOneEndlessLineAreMasked(t *testing.T) {
	t.Parallel()
	line := []byte(strings.Repeat(".", 300000))
	for _, at := range []int{4096, 32768, 65536, 131072, 262144} {
		copy(line[at-20:], " "+token+" ")
	}
	p := newPlace(t, "[tools.cat]\ndescription = \"A test.\"\ncommand = [\"cat\", \"line\"]\nrisk = \"READ\"\n")
	p.write("line", string(line), 0o644)
	s := p.serve()
	f := s.call("cat", nil)
	if f.StdoutBytes != int64(len(line)) {
		t.Errorf("stdout_bytes %d, the tool wrote %d", f.StdoutBytes, len(line))
	}
	stored := p.object(*f.OutputHash)
	if strings.Count(stored, "[REDACTED]") != 5 || strings.Trim(strings.ReplaceAll(stored, "[REDACTED]", ""), ". ") != "" {
		t.Errorf("%d marks in %d bytes", strings.Count(stored, "[REDACTED]"), len(stored))
	}
	nowhere(t, p, s, token[:24])
}

func TestPrivateKeysAreMaskedInEveryForm(t *testing.T) {
	t.Parallel()
	var body []string
	for i := range 6 {
		body = append(body, strings.Repeat(fmt.Sprintf("MIIEpQIBAAKCAQ%d", i), 4))
	}
	pem := func(kind, glue, header string) string {
		return "-----BEGIN " + kind + "PRIVATE KEY-----" + glue + header + strings.Join(body, glue) + glue + "-----END " + kind + "PRIVATE KEY-----"
	}
	forms := map[string]string{
		"lines":     pem("RSA ", "\n", "") + "\n",
		"one line":  pem("RSA ", " ", ""),
		"escaped":   pem("RSA ", `\n`, ""),
		"no RSA":    pem("", "\n", ""),
		"header":    pem("RSA ", "\n", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\n"),
		"truncated": strings.TrimSuffix(pem("RSA ", "\n", ""), "-----END RSA PRIVATE KEY-----"),
	}
	p := newPlace(t, printTool+"[tools.cat]\ndescription = \"A test.\"\ncommand = [\"cat\", \"{f}\"]\nrisk = \"READ\"\n[tools.cat.params.f]\ntype = \"string\"\nrequired = true\n")
	for name, form := range forms {
		p.write(name, "start "+form, 0o644)
	}
	s := p.serve()
	for name, form := range forms {
		if f := s.call("cat", object{"f": name}); !strings.HasPrefix(f.Stdout, "start ") || !strings.Contains(f.Stdout, "[REDACTED]") {
			t.Errorf("%s: %q", name, f.Stdout)
		}
		if f := s.call("print", object{"s": form}); f.StdoutBytes != int64(len(form)) {
			t.Errorf("%s: the tool got %d bytes of %d", name, f.StdoutBytes, len(form))
		}
	}
	nowhere(t, p, s, body...)
}

func TestDeclaredSecretsReachOnlyTheTool(t *testing.T) {
	t.Parallel()
	const secret = `p@ss"w\rd/+=12345678`
	p := newPlace(t, printTool+"[secrets]\nDEPLOY_TOKEN = { env = \"DEPLOY_TOKEN\" }\n"+
		fixed("deploy", `test ${#DEPLOY_TOKEN} -eq 20 && printf 'got %s' "$DEPLOY_TOKEN"; printf '%s' "$DEPLOY_TOKEN" >&2`, `env = { DEPLOY_TOKEN = "$secret:DEPLOY_TOKEN" }`, "redact = false")+
		fixed("other", `printf '%s' "${DEPLOY_TOKEN-none}"`))
	p.env = append(p.env, "DEPLOY_TOKEN="+secret)
	s := p.serve("--log-level", "debug")
	if f := s.call("deploy", nil); f.Stdout != "got [REDACTED]" || f.Stderr != "[REDACTED]" {
		t.Errorf("stdout %q, stderr %q", f.Stdout, f.Stderr)
	}
	if f := s.call("other", nil); f.Stdout != "none" {
		t.Errorf("stdout %q", f.Stdout)
	}
	if f := s.call("print", object{"s": "a " + secret + " b"}); f.StdoutBytes != int64(len(secret)+4) || f.Stdout != "a [REDACTED] b" {
		t.Errorf("%d bytes, stdout %q", f.StdoutBytes, f.Stdout)
	}
	s.call("print", object{"s": 5, secret: "x"})
	s.answer(s.begin(secret, object{"s": secret}), patience)
	encoded, _ := json.Marshal(secret)
	nowhere(t, p, s, secret, strings.Trim(string(encoded), `"`))

	p.env[len(p.env)-1] = "DEPLOY_TOKEN=short"
	if got := p.run("serve"); got.code != 2 || !strings.Contains(got.stderr, "DEPLOY_TOKEN") {
		t.Errorf("a secret of 5 bytes: exit %d, %s", got.code, got.stderr)
	}
}

// A value is secret by its key, whatever it looks like; the tool gets it as it is.
func TestValuesOfSecretKeysReachOnlyTheTool(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "[tools.sum]\ndescription = \"A test.\"\ncommand = [\"sh\", \"-c\", 'printf %s \"$1\" | sha256sum', \"sh\", \"{v}\"]\nrisk = \"READ\"\n[tools.sum.params.v]\ntype = \"object\"\nrequired = true\n")
	s := p.serve()
	v := `{"Authorization":"Bearer abc.def","db":{"note":"ok","password":"hunter2x"},"tokens":["t1-secret"]}`
	if f := s.call("sum", object{"v": json.RawMessage(v)}); !strings.HasPrefix(f.Stdout, sha256Hex(v)) {
		t.Errorf("the tool got another value than %s: %s", v, f.Text)
	}
	nowhere(t, p, s, "hunter2x", "abc.def", "t1-secret")
	r := p.rows()[0]
	if stored, want := p.object(r.InputHash), `{"v":{"Authorization":"[REDACTED]","db":{"note":"ok","password":"[REDACTED]"},"tokens":["[REDACTED]"]}}`; stored != want || r.Redactions < 3 {
		t.Errorf("stored %s with %d redactions, want %s", stored, r.Redactions, want)
	}
}

// Of a secret that is JSON the one word in it that is secret is masked too, wherever it stands; a brace is none.
func TestSecretThatIsJSONIsMaskedInParts(t *testing.T) {
	t.Parallel()
	const word = "plainword-long-9931"
	secret := "{\n  \"user\": \"deploy\",\n  \"password\": \"" + word + "\"\n}"
	p := newPlace(t, "[secrets]\nACCOUNT = { env = \"ACCOUNT\" }\n"+
		fixed("whole", `printf '%s' "$ACCOUNT"`, `env = { ACCOUNT = "$secret:ACCOUNT" }`)+
		fixed("compact", `printf '%s' "$ACCOUNT" | tr -d ' \n'`, `env = { ACCOUNT = "$secret:ACCOUNT" }`)+
		fixed("line", `printf '%s' "$ACCOUNT" | grep password`, `env = { ACCOUNT = "$secret:ACCOUNT" }`)+
		fixed("value", `printf '%s' "$ACCOUNT" | grep password | cut -d '"' -f 4; echo end`, `env = { ACCOUNT = "$secret:ACCOUNT" }`)+
		fixed("brace", `printf '{\n'`))
	p.env = append(p.env, "ACCOUNT="+secret)
	s := p.serve()
	for tool, want := range map[string]string{"whole": "[REDACTED]", "compact": "[REDACTED]", "value": "[REDACTED]\nend\n", "brace": "{\n"} {
		if f := s.call(tool, nil); f.Stdout != want {
			t.Errorf("%s: %q", tool, f.Stdout)
		}
	}
	expect(t, s.call("line", nil), 0)
	nowhere(t, p, s, word)
}

func TestArgumentThatHoldsAMarkIsRefused(t *testing.T) {
	t.Parallel()
	p := newPlace(t, printTool)
	s := p.serve()
	expect(t, s.call("print", object{"s": "key = [REDACTED]"}), "invalid_arguments")
}
