package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"toolrun/archive"
	"toolrun/archive/redact"
	"toolrun/archive/trace"
	"toolrun/catalog"
	"toolrun/runner"
	"toolrun/sandbox"
)

// engine is what serve and call run tools with: the frozen catalog, the data directory, the host, and one run over them.
// The parts are opened in this order and closed in reverse.
type engine struct {
	catalog *catalog.Catalog
	rules   *redact.Rules // of the catalog's secrets
	dir     *archive.Dir
	host    *sandbox.Host
	noHost  error // why there is no host
	boxes   []*sandbox.Box
	run     *trace.Run
	runner  *runner.Runner

	background errgroup.Group // closing what dead runs left open
}

// engineOptions are the flags that concern the runner.
type engineOptions struct {
	jobs       int
	payloads   string
	autonomous []string // risk classes
}

// openEngine opens all that a call needs and puts the run on the record. Where the error is errHost the engine is there
// all the same: serve tells the client the remedy before it ends.
func (a *app) openEngine(options engineOptions) (e *engine, err error) {
	c, explicit, err := a.loadCatalog()
	if err != nil {
		return nil, err
	}
	data, err := a.dataDir()
	if err != nil {
		return nil, err
	}
	workspace, err := a.workspace(data)
	if err != nil {
		return nil, err
	}
	secrets, err := a.secrets(c)
	if err != nil {
		return nil, err
	}
	rules := redact.New(secrets)
	a.maskWith(rules)

	e = &engine{catalog: c, rules: rules}
	defer func() {
		if err != nil && !errors.Is(err, errHost) {
			err = errors.Join(err, e.close())
			e = nil
		}
	}()
	if e.dir, err = a.openForWriting(); err != nil {
		return e, err
	}
	if !explicit {
		if err := a.checkTrust(e.dir, c); err != nil {
			return e, err
		}
	}
	table, err := a.priceTable(c, e.dir.Path())
	if err != nil {
		return e, err
	}
	if e.run, err = a.beginRun(e.dir, c, rules, options.autonomous); err != nil {
		return e, err
	}
	e.host, e.noHost = sandbox.Open(sandbox.Config{Forbidden: []string{e.dir.Path()}, Logger: a.logger()})
	e.runner, err = runner.New(runner.Config{
		Catalog: c, Archive: e.dir, Run: e.run, Rules: rules, Secrets: secrets, Prices: table,
		MakeBox: e.makeBox, Workspace: workspace, DataDir: e.dir.Path(), CacheDir: a.cacheDir(e.dir.Path(), workspace),
		Path: a.getenv("PATH"), LookupEnv: a.lookupEnv,
		Jobs: options.jobs, AllowCommand: func(id string) string { return a.answerCommand("allow", id) }, Autonomous: options.autonomous, Role: a.role(), Payloads: options.payloads, Now: a.now, Logger: a.logger(),
	})
	switch {
	case err != nil && e.noHost != nil:
		return e, &hostError{e.noHost} // once, and not for each tool
	case errors.Is(err, errHost):
		return e, err
	case err != nil: // a folder or user that the catalog names is not there
		return e, &usageError{err: err}
	}
	e.runner.Watch()
	// A run that died left calls open; closing them waits for nobody and nobody waits for it.
	e.background.Go(func() error {
		n, err := e.dir.Recover(e.run.ID())
		if n > 0 {
			a.logger().Warn("calls that a dead run left open are closed", "calls", n)
		}
		return err
	})
	return e, nil
}

// makeBox makes a tool's box; what fails there is a matter of the host.
func (e *engine) makeBox(p sandbox.Profile) (runner.Box, error) {
	if e.noHost != nil {
		return nil, &hostError{e.noHost}
	}
	box, err := e.host.Box(p)
	if err != nil {
		return nil, &hostError{err}
	}
	e.boxes = append(e.boxes, box)
	return box, nil
}

// beginRun writes the first line of the run's trace: its frozen catalog.
func (a *app) beginRun(d *archive.Dir, c *catalog.Catalog, rules *redact.Rules, autonomous []string) (*trace.Run, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	h := trace.Header{
		StartedAt: a.now(), CatalogNames: c.Names(), CatalogSHA256: c.SHA256(),
		SchemaSHA256: c.SchemaSHA256s(), DefinitionSHA256: c.DefinitionSHA256s(), CatalogDefinitionSHA256: c.DefinitionSHA256(),
		Version: buildInfo().Version, Host: host, PID: os.Getpid(), Autonomous: autonomous,
	}
	if role := a.role(); role != "" {
		masked := rules.Text(role)
		h.Role = &masked
	}
	a.keepDefinitions(d, c)
	return d.Begin(h)
}

// keepDefinitions puts what the catalog declares into the store, under the hash that rows and traces have: so it can be said
// later what changed between two runs. A definition in which something would be masked is not kept, for its bytes would be
// others; neither is one for which there is no room.
func (a *app) keepDefinitions(d *archive.Dir, c *catalog.Catalog) {
	var shapes *redact.Rules
	for _, t := range c.Tools() {
		if _, err := os.Lstat(d.Store.Path(t.DefinitionSHA256)); err == nil {
			continue
		}
		if shapes == nil {
			shapes = redact.New(nil)
		}
		masked, err := shapes.JSON(t.Definition)
		if err == nil && masked.Redactions() == 0 && masked.String() == string(t.Definition) {
			_, err = d.Store.Put(masked)
		}
		if err != nil {
			a.logger().Warn("a definition is not kept", "tool", t.Name, "err", err)
		}
	}
}

// cacheDir is where the tools' caches of a project are kept: outside the workspace, and outside the data directory, which
// no tool can see. A project is its folder.
func (a *app) cacheDir(data, workspace string) string {
	base := data + "-cache"
	if dir := a.getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		base = filepath.Join(dir, "toolrun")
	} else if home := a.getenv("HOME"); filepath.IsAbs(home) {
		base = filepath.Join(home, ".cache", "toolrun")
	}
	sum := sha256.Sum256([]byte(workspace))
	return filepath.Join(base, projectName(workspace)+"-"+hex.EncodeToString(sum[:6]))
}

// close ends the run in order: its last line is written, everything is synced.
func (e *engine) close() error {
	errs := []error{e.background.Wait()}
	if e.runner != nil {
		errs = append(errs, e.runner.Close())
	} else if e.run != nil {
		errs = append(errs, e.dir.End(e.run, e.catalog.Names()))
	}
	for _, box := range e.boxes {
		box.Close()
	}
	if e.host != nil {
		errs = append(errs, e.host.Close())
	}
	if e.dir != nil {
		errs = append(errs, e.dir.Close())
	}
	return errors.Join(errs...)
}
