// Command gangrun starts one training job as a gang of ranks and stays with it until the job
// succeeds, or until another attempt would be of no use.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/agent"
	"github.com/gangrun/gangrun/internal/controller/detached"
	_ "github.com/gangrun/gangrun/internal/early"          // starts shims and agents, and catches signals
	_ "github.com/gangrun/gangrun/internal/early/bridging" // starts bridges
	"github.com/gangrun/gangrun/internal/remote/stepserver"
)

// version is set by the linker ("make build").
var version = "devel"

func main() {
	os.Exit(run(os.Args, os.Stdout, os.Stderr))
}

// run is the whole program, except for the call of os.Exit and for what package early does. It checks first whether
// this process is an agent, because a gang waits for its agents.
func run(args []string, stdout, stderr io.Writer) int {
	nameSelf()
	if len(args) > 1 && args[1] == "step" {
		return stepserver.Main(args[2:])
	}
	if len(args) > 1 && args[1] == "agent" {
		return agent.Main(args[2:])
	}
	args, err := detached.Words(args)
	if err != nil {
		return tell(err, stderr)
	}
	a := app(stdout, stderr)
	a.Metadata = map[string]any{typedWords: args}
	return tell(a.Run(ordered(a, args)), stderr)
}

// nameSelf sets the name of this process for ps, top and killall. The kernel names a process that
// was started as /proc/self/exe after that path.
func nameSelf() {
	const comm = "/proc/self/comm"
	if name, err := os.ReadFile(comm); err == nil && string(name) == "exe\n" {
		_ = os.WriteFile(comm, []byte("gangrun"), 0) // gangrun works under any name
	}
}

// app returns the command-line application.
func app(stdout, stderr io.Writer) *cli.App {
	a := &cli.App{
		Name:                      "gangrun",
		Usage:                     "start a training job as a gang of ranks, and stay with it",
		UsageText:                 "gangrun COMMAND [OPTIONS] [ARGUMENTS]",
		Description:               "gangrun COMMAND --help tells the options of a command. A first job:\n\n   gangrun run -n 2 -- python3 train.py",
		Version:                   version,
		Writer:                    stdout,
		ErrWriter:                 stderr,
		HideHelp:                  true,
		Flags:                     []cli.Flag{helpFlag()},
		EnableBashCompletion:      true,
		DisableSliceFlagSeparator: true,
		ExitErrHandler:            func(*cli.Context, error) {}, // only main exits
		OnUsageError:              onUsageError,
		Commands: []*cli.Command{
			runCommand(), submitCommand(), preflightCommand(), psCommand(), historyCommand(), statusCommand(), topCommand(), logsCommand(), attachCommand(), stopCommand(),
			reportCommand(), diagnoseCommand(), checkpointsCommand(), curveCommand(), planCommand(), topoCommand(), leasesCommand(), cleanCommand(), mpiexecCommand(), completionCommand(),
		},
	}
	a.Action = func(c *cli.Context) error {
		if c.Args().Present() && !helpAsked(c) {
			return unknownCommand(a, c.Args().First())
		}
		return cli.ShowAppHelp(c)
	}
	for _, c := range a.Commands {
		c.OnUsageError = onUsageError
		withHelp(c)
	}
	cli.HelpFlag, cli.FlagStringer = nil, flagText(cli.FlagStringer)
	cli.VersionPrinter = func(c *cli.Context) { fmt.Fprintln(c.App.Writer, "gangrun", c.App.Version) }
	return a
}
