package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"toolrun/sandbox"
)

// The scripts run the real main: the test binary is copied and started under the name toolrun.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"toolrun": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Condition:           condition,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir+"/home")
			env.Setenv("TOOLRUN_DATA", env.WorkDir+"/data")
			return os.Mkdir(env.WorkDir+"/home", 0o700)
		},
	})
}

// condition knows [root], and [sandbox]: this host can enforce everything. With TOOLRUN_REQUIRE_SANDBOX=1, as in CI, it
// has to.
func condition(cond string) (bool, error) {
	if cond == "root" {
		return os.Getuid() == 0, nil
	}
	if cond != "sandbox" {
		return false, fmt.Errorf("unknown condition %q", cond)
	}
	missing, _ := missingWalls(sandbox.Doctor())
	if len(missing) > 0 && os.Getenv("TOOLRUN_REQUIRE_SANDBOX") == "1" {
		return false, fmt.Errorf("TOOLRUN_REQUIRE_SANDBOX is set, but this host lacks %v", missing)
	}
	return len(missing) == 0, nil
}
