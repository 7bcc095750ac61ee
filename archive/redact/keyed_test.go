package redact

import (
	"strings"
	"testing"
)

func TestNamesOfSecrets(t *testing.T) {
	for name, want := range map[string]kind{
		"password": isPassword, "Passwd": isPassword, "DB_PASSWORD_2": isPassword, "userPassword": isPassword, "dbpassword": isPassword, "new-password-confirmation": isPassword,
		"client_secret": isToken, "clientSecret": isToken, "X-Api-Key": isToken, "APIKey": isToken, "apikey": isToken, "AWS_SECRET_ACCESS_KEY": isToken, "AccountKey": isToken,
		"secret_key_base": isToken, "tokens": isToken, "GITHUB_TOKEN": isToken, "refreshToken": isToken, "private-key": isToken, "credentials": isToken,
		"Authorization": isAuth, "_auth": isAuth, "Set-Cookie": isCookie,
		"key": isPublic, "public_key": isPublic, "primaryKey": isPublic, "max_tokens": isPublic, "next_page_token": isPublic, "nextPageToken": isPublic, "token_type": isPublic, "tokenizer": isPublic,
		"passed": isPublic, "author": isPublic, "secretName": isPublic, "password_file": isPublic, "monkey": isPublic, "bos_token": isPublic, "": isPublic, "_": isPublic, "keyboard": isPublic,
	} {
		if got := kindOf([]byte(name)); got != want {
			t.Errorf("%q is of kind %d, want %d", name, got, want)
		}
	}
}

// Each text has its secret between « and »; texts without stay.
func TestValuesThatTheirNamesMakeSecrets(t *testing.T) {
	for _, marked := range []string{
		"DB_PASSWORD=«hunter2x»\n", "export PGPASSWORD=«letmein» && psql", "password: «hunter2x»\n", "password = \"«hunter2x»\"", `{"password":"«hunter2x»","note":"ok"}`, `{"password": "«letmein»"}`,
		`"{\"password\":\"«hunter2x»\"}"`, `env: "A=1\nDB_PASSWORD=«hunter2x»\nB=2"`, "mysql --password «hunter2x» db", "--password=«letmein» ", "--api-key '«9f8a7b6c5d4e»'", "?user=x&password=«hunter2x»&next=/",
		"Server=db;Uid=app;Pwd=«S3cur3x»;Database=x", "AccountKey=«9f8a7b6c5d4e3f2a9f8a7b6c5d4e3f2a==»;", "<password>«letmein»</password>", "machine h login me password «h2unter»\n", "API key: «9f8a7b6c5d4e3f2a»\n",
		"X-Api-Key: «9f8a7b6c5d4e»\n", "-H \"X-Auth-Token: «a1b2c3d4e5»\"", "clientSecret: '«md5S8XU2q0dwLOHrWveU4UoN»',", "sent X-Api-Key: «010d89df7779e0d863bd501fbd0183b1»\n", "aws_secret_access_key = «/hC/dMoFG7+pqkbm/jxYmeKudPFhLS+hNCNacIDh»\n", "clientSecret: '«9f8a7b6c5d4e3f2a»',", "setProperty(\"API_TOKEN\", \"«9f8a7b6c5d4e3f2a»\")", "token := `«9f8a7b6c5d4e3f2a»`",
		"aws_secret_access_key = «wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzz12»\n", "aws_secret_access_key = «/K/BNF2eIgidPON+WrpybfoTQKqqQJutEZSLBYzI»\n", "cat: aws_secret_access_key = «gFnjzXcNwrGvaValgxb5RpxiCbwFbyLVfzdZOTPZ:» no such file\n", "//registry/:_authToken=«9f8a7b6c-5d4e-4f2a-9f8a-7b6c5d4e3f2a»\n", "PASSWORD=«a,b;c&d9»\n",
		"Authorization: Basic «ZGVwbG95Omh1bnRlcjJ4»\n", "authorization: token «9f8a7b6c5d4e3f2a»", "curl -H 'authorization: ApiKey «9f8a7b6c5d4e3f2a»'", "proxy uses basic «ZGVwbG95Omh1bnRlcjJ4»",
		"Cookie: theme=dark; session=«9f8a7b6c5d4e3f2a9f8a»; x=1\n", "Set-Cookie: sid=«9f8a7b6c5d4e3f2a9f8a»; Path=/; HttpOnly",
		"postgres://app:«letm31n»@db:5432/x", "https://u:«hunt@r2x»@h/x", "amqp://u:«a/b9c8d7e6»@h", "redis://:«hunter2x»@h:6379",
		"curl -s -u deploy:«hunter2x» https://x", "curl \\\n  --user 'deploy:«hunter2x»' \\\n  https://x", "curl -u «sk9f8a7b6c5d»: https://x", "curl --user me:'«hunter2x»' x", "curl -u \"me:«hunt er2x»\" x",
		"https://b/o?X-Amz-Signature=«9f8a7b6c5d4e3f2a9f8a7b6c5d4e3f2a9f8a7b6c»&x=1", "?sv=1&sig=«9f8a7b6c5d4e3f2a9f8a7b6c5d4e3f2a%3D»",
		"apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\ndata:\n  user: «YWRtaW4=»\n  word: \"«aHVudGVy»\"\ntype: Opaque\n", "apiVersion: v1\ndata:\n  user: «YWRtaW4=»\nkind: Secret\n",
		"kind: Secret\nstringData:\n  a: |\n    «line one»\n    «line two»\n  b: «x»\n", `{"data": {"user": "«YWRtaW4=»"}, "kind": "Secret"}`, `{"kind": "Secret", "data": {"user": "«YWRtaW4=»"}}`,
		// innocent
		"password: string\n", "password = os.environ['PASSWORD']", "password=$PASSWORD", "password: ${DB_PASSWORD}", "password: <password>", "password: {{ db.password }}", "PASSWORD=changeme", "token: null,", "password=12",
		"max_tokens: 4096", "tokens: 123456", "token = parse(x1y2z3)", "password=self.password2)", "token: Token2,", "if password == \"hunter2x\"", "std::password::hunter2x", "e.password=t?n:r.password;", "secret: sha256:9f8a7b6c5d4e3f2a",
		"--- PASS: TestHTTP2Server (0.1s)", "PWD=/home/me/x1", "password-file=/run/x1y2z3", "Enter password: ", "\"password\": \"Password\"", "\"password\": \"Enter your password\"", "\"token\": \"string\"", "secretName: tls-cert-2",
		"key: 9f8a7b6c5d4e3f2a9f8a7b6c5d4e3f2a", "Cache key: Linux-go-9f8a7b6c5d4e3f2a", "public_key = \"9f8a7b6c5d4e3f2a9f8a7b6c5d4e3f2a\"", "token: 2024-11-30T18:05:12Z", "PASSWORD=[REDACTED]", "password: ********",
		"http://localhost:8080/x@v1.2.3", "https://user:password@host/", "https://u:$PASS@h/", "ssh://git@h:22/x", "mailto:a@b", "http://[::1]:80/@x", "docker run -u 1000:1000 x", "curl -u $USER:$PASS x",
		"Authorization: Basic dXNlcjpwYXNzd29yZA==", "WWW-Authenticate: Basic realm=\"x1\"", "Basic information about", "Authorization: none", "Cookie: theme=dark", "kind: ConfigMap\ndata:\n  user: YWRtaW4=\n",
		`{"kind": "ConfigMap", "data": {"user": "YWRtaW4="}}`, "data:\n  a: b\nmetadata:\n  kind: x\n",
	} {
		in := strings.NewReplacer("«", "", "»", "").Replace(marked)
		want := marked
		for n := 0; ; n++ {
			before, rest, found := strings.Cut(want, "«")
			if !found {
				if got := New(nil).Text(in); got.String() != want || got.Redactions() != n {
					t.Errorf("%q became %q, %d marks; want %q", in, got, got.Redactions(), want)
				}
				break
			}
			_, after, _ := strings.Cut(rest, "»")
			want = before + Mark + after
		}
		if off := New(nil).Shapes(false).Text(in); off.String() != in {
			t.Errorf("without shapes %q became %q", in, off)
		}
	}
}

// SCENARIOS 115.
func TestValuesThatTheirKeysMakeSecretsInJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"db":{"password":"hunter2x","note":"ok"},"Authorization":"Bearer abc.def","tokens":["t1-secret"]}`: `{"db":{"password":"[REDACTED]","note":"ok"},"Authorization":"[REDACTED]","tokens":["[REDACTED]"]}`,
		`{"PASSWD":"x","api-key":"a","apiKey":"b","Access_Key":"c","private_key":"d","client_secret":"e","cookie":"f","X-API-KEY":"g"}`: `{"PASSWD":"[REDACTED]","api-key":"[REDACTED]","apiKey":"[REDACTED]","Access_Key":"[REDACTED]",` +
			`"private_key":"[REDACTED]","client_secret":"[REDACTED]","cookie":"[REDACTED]","X-API-KEY":"[REDACTED]"}`,
		`{"password":true,"token":null,"secret":"","pwd":"${PWD}","api_key":"$KEY","token2":"<token>","password2":123}`: `{"password":true,"token":null,"secret":"","pwd":"${PWD}","api_key":"$KEY","token2":"<token>","password2":123}`,
		`{"password":123456,"tokens":123456,"max_tokens":4096,"pass":1200,"usage":{"tokens":{"input":5000}}}`:           `{"password":"[REDACTED]","tokens":123456,"max_tokens":4096,"pass":1200,"usage":{"tokens":{"input":5000}}}`,
		`{"env":[{"name":"DB_PASSWORD","value":"letmein"},{"name":"HOME","value":"/root"}]}`:                            `{"env":[{"name":"DB_PASSWORD","value":"[REDACTED]"},{"name":"HOME","value":"/root"}]}`,
		`{"secrets":{"A":"b c","B":["x-y"],"name":"n"},"credentials":{"username":"bob","key":"abc"}}`:                   `{"secrets":{"A":"[REDACTED]","B":["[REDACTED]"],"name":"n"},"credentials":{"username":"bob","key":"[REDACTED]"}}`,
		`{"args":["mysql","--password","x","-u","root"],"cmd":["curl","-u","bob:hunter"]}`:                              `{"args":["mysql","--password","[REDACTED]","-u","root"],"cmd":["curl","-u","bob:[REDACTED]"]}`,
		`{"properties":{"password":{"type":"string"},"token":{"type":"string"}},"required":["password","token"]}`:       `{"properties":{"password":{"type":"string"},"token":{"type":"string"}},"required":["password","token"]}`,
		`{"token_type":"bearer","auth":"basic","key":"PROJ-1","next_page_token":"CAUQAA","author":"me"}`:                `{"token_type":"bearer","auth":"basic","key":"PROJ-1","next_page_token":"CAUQAA","author":"me"}`,
		`["password","hunter2x"]`: `["password","hunter2x"]`,
	} {
		got, err := New(nil).JSON([]byte(in))
		if err != nil || got.String() != want || got.Redactions() != strings.Count(want, Mark) {
			t.Errorf("%s became\n%s, %d marks, %v; want\n%s", in, got, got.Redactions(), err, want)
		}
		if off, err := New(nil).Shapes(false).JSON([]byte(in)); err != nil || off.String() != in {
			t.Errorf("without shapes %s became %s", in, off)
		}
	}
}

// A tool is given the value, and may print it; its argv holds it.
func TestValuesThatKeysMadeSecretsAreKnownToTheRulesOfTheCall(t *testing.T) {
	r := New(map[string]string{"A": "correct horse battery"})
	in, err := r.JSON([]byte(`{"password":"only-letters","note":"only-letter","token":"short","args":["--secret","word-by-word","x"]}`))
	if err != nil {
		t.Fatal(err)
	}
	of := r.With(in)
	if got := of.Strings([]string{"mysql", "-ponly-letters", "word-by-word"}).String(); got != `["mysql","-p`+Mark+`","`+Mark+`"]` {
		t.Error(got)
	}
	for text, want := range map[string]string{
		"using b25seS1sZXR0ZXJz": "using " + Mark, "only-letter": "only-letter", "short": "short", "correct horse battery": Mark,
	} {
		if got, _ := streamed(t, of, text, []int{3}); got != want {
			t.Errorf("%q became %q", text, got)
		}
		if got := of.Shapes(false).Text(text).String(); got != want {
			t.Errorf("without shapes %q became %q", text, got)
		}
	}
	plain, err := r.JSON([]byte(`{"note":"only-letters"}`))
	if err != nil || r.With(plain) != r {
		t.Error("rules were made for arguments without secrets")
	}
}

func TestOptionsOfAnArgumentVector(t *testing.T) {
	got := New(nil).Strings([]string{"deploy", "--token", "word", "--dry-run", "--password=letmein", "--password", "--verbose", "--token", "$TOKEN"})
	if want := `["deploy","--token","` + Mark + `","--dry-run","--password=` + Mark + `","--password","--verbose","--token","$TOKEN"]`; got.String() != want || got.Redactions() != 2 {
		t.Errorf("%s", got)
	}
}

// toolrun starts often and redacts little: New makes nothing that the first text does not ask for.
func TestNewIsCheap(t *testing.T) {
	if allocs := testing.AllocsPerRun(100, func() { New(map[string]string{"A": strings.Repeat("correct horse", 100)}) }); allocs > 20 {
		t.Errorf("%.0f allocations", allocs)
	}
	lazy := &provider{expr: "(", min: 5, has: new([256]bool)}
	if v := lazy.token([]byte("text"), 0, 1, true); v.found || lazy.re != nil {
		t.Error("an expression was compiled before the run of bytes fitted")
	}
}
