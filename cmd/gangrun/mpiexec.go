package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/controller"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/jobcheck"
	"github.com/gangrun/gangrun/internal/mpiexec"
	"github.com/gangrun/gangrun/internal/namedfile"
	"github.com/gangrun/gangrun/internal/thishost"
	"github.com/gangrun/gangrun/topology/inventory"
)

func mpiexecCommand() *cli.Command {
	return &cli.Command{
		Name:            "mpiexec",
		Usage:           "run programs as mpiexec or mpirun would, with their options",
		ArgsUsage:       "[-n N] [OPTIONS] PROGRAM [ARGUMENTS] [: -n M [OPTIONS] PROGRAM2 [ARGUMENTS2]]...",
		SkipFlagParsing: true,
		Description: "There is no preflight and no retry, and of a run that ends well gangrun says nothing. The\n" +
			"ranks' standard output and standard error are kept apart, and are theirs alone.\n" +
			"   -n N, -np N              ranks of this program\n" +
			"   -ppn N                   ranks that each host takes in its turn\n" +
			"   -hosts A,B:2  -f FILE    hosts, in the order of their turns\n" +
			"   -loopback H              simulate the hosts h1 to hH on this machine\n" +
			"   -genv K V  -env K V      set a variable for all programs, or for this one\n" +
			"   -x K=V  --mca K V        the same, as Open MPI writes it\n" +
			"   -genvnone -genvlist A,B  hand on no environment, or these variables alone\n" +
			"   -wdir DIR                start this program in DIR\n" +
			"   -l                       show the rank before each line\n" +
			"   -s RANK                  who gets standard input: a rank (0), all or none\n" +
			"   -usize N                 universe size: a number, SYSTEM or INFINITE\n" +
			"   -t SECONDS               end the run after so long, as MPIEXEC_TIMEOUT does\n" +
			"   --mpi MPI                auto, mpich, openmpi or none\n" +
			"   -v                       tell how the run goes, and which options change nothing\n" +
			"docs/mpiexec.md has the others.",
		Action: func(c *cli.Context) error {
			args, err := mpiexec.Parse(c.Args().Slice(), os.LookupEnv, func(path string) ([]byte, error) { return namedfile.ReadBounded(path, inventory.MaxSize) })
			switch {
			case err != nil:
				return err
			case args.Help:
				cli.HelpPrinter(c.App.Writer, cli.CommandHelpTemplate, c.Command)
				return nil
			case args.Version:
				cli.VersionPrinter(c)
				return nil
			}
			return runMpiexec(args, c.App.ErrWriter)
		},
	}
}

// runMpiexec runs the programs in args until they end.
func runMpiexec(args mpiexec.Args, stderr io.Writer) error {
	own := args.Here(thishost.New())
	turns, err := args.Turns(own)
	if err != nil {
		return err
	}
	cwd, err := workingDir(args.Relative(), "-wdir")
	if err != nil {
		return err
	}
	spec := args.Spec(cwd)
	if spec.Hosts, err = args.Hosts(own); err != nil {
		return err
	}
	if err := jobcheck.Spec(spec); err != nil {
		return &failure.Error{Code: failure.CodeUsage, Err: err, Fallback: "gangrun mpiexec --help lists the options"}
	}
	if args.Bare {
		keep := args.Keep
		if spec.Hosts != "" { // SSH needs SSH_AUTH_SOCK; gangrun does not pass it to another host
			keep = append(slices.Clone(keep), "SSH_AUTH_SOCK")
		}
		if err := bareEnviron(keep); err != nil {
			return err
		}
	}
	if args.Verbose {
		for _, option := range args.Ignored {
			fmt.Fprintf(stderr, "gangrun: note: %s changes nothing here\n", option)
		}
	}
	return controller.RunTurns(spec, controller.Options{Plain: !args.Prefix, Terse: !args.Verbose, Universe: args.Universe, Mpiexec: true}, turns)
}

// bareEnviron removes variables from this process's environment, which the ranks inherit. It keeps
// the variables in keep, PATH and the home of the runs.
func bareEnviron(keep []string) error {
	dir, err := controller.HomeDir()
	if err != nil {
		return err
	}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if name != "PATH" && !slices.Contains(keep, name) {
			if err := os.Unsetenv(name); err != nil {
				return err
			}
		}
	}
	return os.Setenv("GANGRUN_HOME", dir)
}
