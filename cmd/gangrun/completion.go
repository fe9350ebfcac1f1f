package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/failure"
)

// The completion scripts for shells. They call gangrun with --generate-bash-completion, a flag of urfave/cli, to find
// out which words can come next.
const (
	bashCompletion = `_gangrun() {
  local cur words
  cur="${COMP_WORDS[COMP_CWORD]}"
  words=("${COMP_WORDS[@]:0:COMP_CWORD}")
  case "$cur" in -*) words+=("$cur") ;; esac
  COMPREPLY=($(compgen -W "$("${words[@]}" --generate-bash-completion 2>/dev/null | sed 's/:.*//')" -- "$cur"))
  return 0
}
complete -o bashdefault -o default -F _gangrun gangrun
`
	zshCompletion = `#compdef gangrun
_gangrun() {
  local -a opts
  local cur=${words[-1]}
  if [[ "$cur" == -* ]]; then
    opts=("${(@f)$(${words[@]:0:#words[@]-1} ${cur} --generate-bash-completion 2>/dev/null)}")
  else
    opts=("${(@f)$(${words[@]:0:#words[@]-1} --generate-bash-completion 2>/dev/null)}")
  fi
  if [[ "${opts[1]}" != "" ]]; then _describe 'values' opts; else _files; fi
}
compdef _gangrun gangrun
`
)

func completionCommand() *cli.Command {
	return &cli.Command{
		Name:        "completion",
		Usage:       "print a script that completes gangrun's commands and flags in a shell",
		ArgsUsage:   "bash|zsh|fish",
		Description: "bash: source <(gangrun completion bash); zsh: source <(gangrun completion zsh); fish: gangrun completion fish | source",
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return failure.Usage("write gangrun completion bash, zsh or fish", "completion takes the name of one shell, got %q", c.Args().Slice())
			}
			var script string
			var err error
			switch shell := c.Args().First(); shell {
			case "bash":
				script = bashCompletion
			case "zsh":
				script = zshCompletion
			case "fish":
				script, err = c.App.ToFishCompletion()
			default:
				return failure.Usage("write gangrun completion bash, zsh or fish", "%q is no shell that gangrun knows", shell)
			}
			if err == nil {
				_, err = fmt.Fprint(c.App.Writer, script)
			}
			return err
		},
	}
}
