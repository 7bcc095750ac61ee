package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"toolrun/archive/evidence"
)

// publishTimeout bounds the command that takes a checkpoint out of reach.
const publishTimeout = 10 * time.Second

// publish puts a new checkpoint, and the seals that were signed with it, where config.toml says, out of the reach of whoever may write here. A copy that fails is
// told: the checkpoint itself stands, and the next one covers what it covers.
func (d *Dir) publish(c *evidence.Checkpoint) {
	to, text := d.Config.Checkpoints, c.Seals+c.Note+"\n"
	if to.File != "" {
		if err := appendCopy(to.File, text); err != nil {
			d.log.Error("the checkpoint was not copied", "file", to.File, "err", err)
		}
	}
	if len(to.Command) > 0 {
		if err := runCopy(to.Command, text); err != nil {
			d.log.Error("the checkpoint was not copied", "command", to.Command[0], "err", err)
		}
	}
}

func appendCopy(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// runCopy runs the command with the checkpoint on its stdin, in a process group of its own, which ends with it.
func runCopy(argv []string, text string) error {
	ctx, cancel := context.WithTimeout(context.Background(), publishTimeout)
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader(text)
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return fmt.Errorf("not done after %v", publishTimeout)
	}
	if line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n"); err != nil && line != "" {
		return fmt.Errorf("%w: %.200s", err, line)
	}
	return err
}
