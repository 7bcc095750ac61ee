package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
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
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir+"/home")
			env.Setenv("TOOLRUN_DATA", env.WorkDir+"/data")
			return os.Mkdir(env.WorkDir+"/home", 0o700)
		},
	})
}
