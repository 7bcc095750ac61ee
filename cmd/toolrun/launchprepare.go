package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"toolrun/archive/query"
	"toolrun/catalog"
	"toolrun/cmd/toolrun/agents"
	"toolrun/sandbox"
)

// Variables by which launch tells serve what it serves. Whoever starts serve by himself may set them too.
const (
	sessionVariable = "TOOLRUN_SESSION_ID" // the session to record under
	launchVariable  = "TOOLRUN_LAUNCH"     // the folder of the launch: each run leaves its id there as an empty file
	configVariable  = "TOOLRUN_MCP_CONFIG" // for a command that is no known agent: a file that attaches toolrun
)

// launchFolders is the folder in the data directory with those of the launches: no tool can see or change there how its
// agent was configured.
const launchFolders = "launch"

// launching is one launch, from its preparation to its summary.
type launching struct {
	agent   *agents.Agent // nil for a command
	catalog *catalog.Catalog
	run     agents.Run
	session string   // where the launch chose it; else ""
	args    []string // for the agent, before the user's
	env     []string // of the agent
	notes   []string // what is not as it should be
	data    string   // the data directory
	end     int64    // of its ledger: the rows of the launch stand behind it
	lock    *os.File
}

func (l *launching) title() string {
	if l.agent == nil {
		return "the command"
	}
	return l.agent.Title
}

// prepare checks what would keep serve from starting, where a person sees it, and writes the configuration of the run.
func (a *app) prepare(agent *agents.Agent, args []string) (l *launching, err error) {
	l = &launching{agent: agent, run: agents.Run{Command: selfPath(), Session: uuid.NewString(), Env: map[string]string{}}}
	if err := a.checkServe(l); err != nil {
		return nil, err
	}
	if err := l.makeFolder(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.remove())
		}
	}()
	a.serveEnv(l, args)
	l.run.EnvNames = envNames(l.catalog, a.lookupEnv)
	l.run.Seconds = callSeconds(l.catalog)
	l.run.Millis = l.run.Seconds * 1000
	if agent == nil {
		return l, a.configureCommand(l)
	}
	return l, a.configureAgent(l, args)
}

// checkServe does what serve does at its start, as far as it can fail.
func (a *app) checkServe(l *launching) error {
	c, explicit, err := a.loadCatalog()
	if err != nil {
		return err
	}
	l.catalog = c
	if l.data, err = a.dataDir(); err != nil {
		return err
	}
	if l.data, err = filepath.Abs(l.data); err != nil {
		return err
	}
	if _, err := a.workspace(l.data); err != nil {
		return err
	}
	if _, err := a.secrets(c); err != nil {
		return err
	}
	d, err := a.openForWriting()
	if err != nil {
		return err
	}
	defer d.Close()
	if l.end, err = query.End(d); err != nil {
		return err
	}
	if !explicit {
		if err := a.checkTrust(d, c); err != nil {
			return err
		}
	}
	if walls, _ := missingWalls(sandbox.Doctor()); len(walls) > 0 && slices.ContainsFunc(c.Tools(), func(t *catalog.Tool) bool { return !t.BestEffort }) {
		l.notes = append(l.notes, fmt.Sprintf("this host cannot enforce everything (%v): toolrun serves no tool that asks for it; see 'toolrun doctor'", walls[0]))
	}
	return nil
}

// makeFolder makes the folder of the launch, and sweeps those of launches that were killed.
func (l *launching) makeFolder() error {
	base := filepath.Join(l.data, launchFolders)
	if err := os.Mkdir(base, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the folder of the launch: %w", err)
	}
	entries, err := os.ReadDir(base)
	if err != nil {
		return fmt.Errorf("read %q: %w", base, err)
	}
	for _, e := range entries {
		dir := filepath.Join(base, e.Name())
		if lock, err := lockFolder(dir); err == nil {
			os.RemoveAll(dir)
			lock.Close()
		}
	}
	l.run.Dir = filepath.Join(base, strings.ToLower(rand.Text()[:12]))
	if err := os.Mkdir(l.run.Dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of the launch: %w", err)
	}
	if l.lock, err = lockFolder(l.run.Dir); err != nil {
		return fmt.Errorf("lock the folder of the launch: %w", err)
	}
	return nil
}

// lockFolder takes the flock on a folder that nobody else holds.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (l *launching) remove() error {
	err := os.RemoveAll(l.run.Dir)
	if l.lock != nil {
		l.lock.Close()
	}
	return err
}
