package agents

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// odd is a run whose values have everything that JSON, TOML and templates could take for their own.
var odd = Run{
	Dir: `/tmp/a "b"\c{{.}}`, Command: `/opt/x "y"\z'/toolrun`, Session: "3f2a9c10-5b1e-4c57-9a41-7d0f3c2b8e66",
	Env: map[string]string{"TOOLRUN_DATA": `/d "q"\$HOME`}, EnvNames: []string{"TOKEN"}, Off: []string{"shell"}, Seconds: 720, Millis: 720000,
}

func TestEveryDescriptionCanBeCarriedOut(t *testing.T) {
	if strings.Join(Names(), " ") != "claude codex gemini opencode qwen" {
		t.Errorf("agents %v", Names())
	}
	for _, a := range All() {
		if a.Title == "" || a.Program == "" || a.Measured == "" || a.Install == "" || a.Setup.Where == "" {
			t.Errorf("%s: something is not said: %+v", a.Name, a)
		}
		if len(a.SessionArgs) > 0 && len(a.Continues) == 0 {
			t.Errorf("%s: which of its arguments go on with a session?", a.Name)
		}
		texts := map[string]Text{"setup.json": a.Setup.Text}
		if a.Name == "codex" {
			texts = map[string]Text{"setup.toml": a.Setup.Text}
		}
		for name, text := range a.Files {
			texts[name] = text
		}
		if text, ok := a.Env["OPENCODE_CONFIG_CONTENT"]; ok {
			texts["env.json"] = text
		}
		for name, text := range texts {
			got, err := text.Of(odd)
			if err != nil {
				t.Errorf("%s: %s: %v", a.Name, name, err)
				continue
			}
			var v map[string]any
			if strings.HasSuffix(name, ".toml") {
				_, err = toml.Decode(got, &v)
			} else {
				err = json.Unmarshal([]byte(got), &v)
			}
			if err != nil || name != "policy.toml" && !strings.Contains(got, `toolrun"`) {
				t.Errorf("%s: %s: %v\n%s", a.Name, name, err, got)
			}
		}
		for _, arg := range append(a.Args, a.SessionArgs...) {
			got, err := arg.Of(odd)
			if err != nil || !strings.HasPrefix(got, "--") {
				t.Errorf("%s: argument %q, %v", a.Name, got, err)
			}
			if value, ok := strings.CutPrefix(got, "--config="); ok {
				var v map[string]any
				if _, err := toml.Decode(value, &v); err != nil {
					t.Errorf("%s: %v\n%s", a.Name, err, value)
				}
			}
		}
	}
}

func TestSecretsAreNamedAndNeverCopied(t *testing.T) {
	if env := odd.EnvByReference(); env["TOKEN"] != "$TOKEN" || env["TOOLRUN_DATA"] != odd.Env["TOOLRUN_DATA"] || len(odd.Env) != 1 {
		t.Errorf("%v from %v", env, odd.Env)
	}
}
