package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// namesItsCommands makes a command with commands of its own, and those, refuse a word that is none of them, unless it takes
// words itself. One that does nothing by itself shows its help. The others say how they are used where words are too many or
// too few.
func namesItsCommands(cmd *cobra.Command) {
	if !cmd.HasSubCommands() {
		if own := cmd.Args; own != nil && cmd.ValidArgs == nil {
			cmd.Args = func(cmd *cobra.Command, args []string) error {
				if own(cmd, args) == nil {
					return nil
				}
				usage := strings.TrimSuffix(cmd.UseLine(), " [flags]")
				if needed := neededWords(cmd.Use); len(args) < len(needed) {
					return fmt.Errorf("%s is missing: it is '%s'", needed[len(args)], usage)
				}
				return fmt.Errorf("%s given: it is '%s'", count(len(args), "argument"), usage)
			}
		}
		return
	}
	if own := cmd.Args; own == nil || own(cmd, []string{"word"}) != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return noCommand(cmd, args[0])
		}
	}
	if !cmd.Runnable() {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	for _, sub := range cmd.Commands() {
		namesItsCommands(sub)
	}
}

// neededWords are the arguments that a line of usage begins with, up to the first that may be left out.
func neededWords(use string) []string {
	words := strings.Fields(use)[1:]
	for i, word := range words {
		if word != strings.ToUpper(word) || strings.ContainsAny(word[:1], "[-|") {
			return words[:i]
		}
	}
	return words
}

// noCommand says that there is no command of this name, and which ones are nearest.
func noCommand(cmd *cobra.Command, name string) error {
	text := fmt.Sprintf("unknown command %q for %q", name, cmd.CommandPath())
	var near []string
	for letters := 1; letters <= 2 && len(near) == 0; letters++ {
		cmd.SuggestionsMinimumDistance = letters
		near = cmd.SuggestionsFor(name)
	}
	for i := range near {
		near[i] = fmt.Sprintf("%q", near[i])
	}
	if len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("%s", text)
}

// helpCmd is --help as a command.
func helpCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Tell what a command does, with an example and its exit statuses.",
		Example: "  toolrun help session",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return &usageError{err: noCommand(about, rest[0]), cmd: about}
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
			about, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, sub := range about.Commands() {
				names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// shells are those that completion knows.
var shells = []cobra.Completion{"bash", "zsh", "fish", "powershell"}

func completionCmd() *cobra.Command {
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Print the script that makes a shell complete commands, flags and tool names: bash, zsh, fish or powershell.",
		Example:   "  source <(toolrun completion bash)",
		ValidArgs: shells,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return fmt.Errorf("name one shell of %s", strings.Join(shells, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			}
			return root.GenPowerShellCompletionWithDesc(out)
		},
	}
}
