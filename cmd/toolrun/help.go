package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// exitsOf is the annotation that lists a command's exit statuses beside 0, 1 and 2; exitsText replaces the list.
const (
	exitsOf   = "exits"
	exitsText = "exits-text"
)

// exitsAlso annotates a command with the exit statuses it has beside done, failed and usage.
func exitsAlso(statuses ...int) map[string]string {
	words := make([]string, len(statuses))
	for i, s := range statuses {
		words[i] = strconv.Itoa(s)
	}
	return map[string]string{exitsOf: strings.Join(words, " ")}
}

// help prints the help of a command: one sentence, an example, its flags, its exit statuses.
func (a *app) help(cmd *cobra.Command, _ []string) {
	var b strings.Builder
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s\n", strings.TrimSpace(text), usageLine(cmd))
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExample:\n%s\n", strings.TrimRight(cmd.Example, "\n"))
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-11s %s\n", sub.Name(), sub.Short)
			}
		}
	}
	if own := ownFlags(cmd); own.HasFlags() {
		fmt.Fprintf(&b, "\nFlags:\n%s", strings.ReplaceAll(own.FlagUsagesWrapped(100), "[="+bareJSON+"]", ""))
	}
	if cmd.HasParent() {
		b.WriteString("\nFlags of every command: 'toolrun --help'.\n")
	} else {
		fmt.Fprintf(&b, "\nFlags of every command:\n%s", cmd.PersistentFlags().FlagUsagesWrapped(100))
	}
	b.WriteString("\nExit status:\n")
	b.WriteString(exitTable(cmd))
	fmt.Fprint(cmd.OutOrStdout(), b.String())
}

// ownFlags are the flags that a command has for itself, without --help.
func ownFlags(cmd *cobra.Command) *pflag.FlagSet {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags = false
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !f.Hidden {
			own.AddFlag(f)
		}
	})
	return own
}

func usageLine(cmd *cobra.Command) string {
	line := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		line = cmd.CommandPath() + " COMMAND [flags]"
	}
	return line
}

// exitTable is the part of the table of exit statuses that a command can end with; the whole of it for toolrun itself.
func exitTable(cmd *cobra.Command) string {
	if text := cmd.Annotations[exitsText]; text != "" {
		return text
	}
	wanted := map[int]bool{statusDone: true, statusFailed: true, statusUsage: true}
	for _, word := range strings.Fields(cmd.Annotations[exitsOf]) {
		n, _ := strconv.Atoi(word)
		wanted[n] = true
	}
	statuses := []int{statusDone, statusFailed, statusUsage, statusFound, statusUnverified, statusData, statusHost, statusInterrupted}
	var b strings.Builder
	for _, s := range statuses {
		if wanted[s] || !cmd.HasParent() {
			fmt.Fprintf(&b, "  %-4d %s\n", s, statusMeaning(s))
		}
	}
	return b.String()
}
