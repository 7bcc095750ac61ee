package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"toolrun/archive/held"
	"toolrun/archive/ledger"
	"toolrun/runner"
)

// ownTerminal is how call asks whoever started it, nil where there is no terminal to ask at: then the call is held as
// serve would hold it.
func (a *app) ownTerminal() runner.Ask {
	screen := screenOf(a.stderr, a.getenv)
	if !screen.terminal || !screenOf(a.stdin, a.getenv).terminal {
		return nil
	}
	return func(ctx context.Context, c held.Call) runner.Said {
		var b strings.Builder
		_ = a.question(&c).print(&b, screen) // a Builder takes everything
		fmt.Fprintf(a.stderr, "%sLet it run? [y/N] ", b.String())
		line := make(chan string, 1)
		go func() { // waits for the terminal also when somebody else has answered
			text, _ := bufio.NewReader(a.stdin).ReadString('\n') // an end without an answer is a no
			line <- text
		}()
		select {
		case text := <-line:
			yes := strings.ToLower(strings.TrimSpace(text))
			by := held.Process(os.Getuid(), os.Getpid())
			by.Via = ledger.ViaCall
			return runner.Said{Answered: true, Answer: held.Answer{Allow: yes == "y" || yes == "yes", By: by}}
		case <-ctx.Done():
			fmt.Fprintln(a.stderr)
			return runner.Said{}
		}
	}
}
