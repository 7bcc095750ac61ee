package claims

import (
	"strings"
	"testing"

	"toolrun/archive/ledger"
)

// What was run, and what it was only given.
func TestTheNamesOfWhatWasRun(t *testing.T) {
	for argv, want := range map[string]string{
		`["bash","flaky.sh","build"]`:                     "bash flaky.sh | build",
		`["bash","-x","bin/flaky.sh","build"]`:            "bash flaky.sh | build",
		`["python3.12","flaky.py","build"]`:               "python3.12 flaky.py | build",
		`["python3","-m","pytest","build"]`:               "python3 pytest | build",
		`["python3","-c","import build; build.test()"]`:   "python3 |",
		`["python3","manage.py","test"]`:                  "python3 manage.py test |",
		`["php","artisan","migrate"]`:                     "php artisan migrate |",
		`["bin/note","build"]`:                            "note | build",
		`["make","-j4","build"]`:                          "make build |",
		`["npm","run","build"]`:                           "npm run build |",
		`["go","test","./..."]`:                           "go test |",
		`["cargo","build","--release"]`:                   "cargo build |",
		`["just","test"]`:                                 "just test |",
		`["tox","-e","lint"]`:                             "tox lint |",
		`["bun","test"]`:                                  "bun test |",
		`["node","--test"]`:                               "node test |",
		`["git","commit","-m","build"]`:                   "git commit |",
		`["timeout","60","make","test"]`:                  "timeout make test |",
		`["sudo","-u","me","bash","flaky.sh","build"]`:    "sudo bash flaky.sh | build",
		`["env","A=1","pytest"]`:                          "env A=1 pytest |",
		`["docker","exec","app","pytest"]`:                "docker exec app pytest |",
		`["cat","build"]`:                                 "cat |",
		`["test","-e","build"]`:                           "|",
		`["sh","-c","cd a && make test; bin/note build"]`: "cd make test note | build",
	} {
		row := &ledger.Row{}
		if err := row.Argv.UnmarshalJSON([]byte(argv)); err != nil {
			t.Fatal(err)
		}
		named, given := namesOf(row)
		got := strings.TrimSpace(strings.TrimSpace(strings.Join(named, " ")) + " | " + strings.Join(given, " "))
		if got != want {
			t.Errorf("%s: %q, want %q", argv, got, want)
		}
	}
}
