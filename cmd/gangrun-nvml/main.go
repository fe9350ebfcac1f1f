//go:build cgo && linux

// Command gangrun-nvml prints what the NVIDIA driver reports about this host's GPUs, as the JSON of an
// nvml.Report. It exits with code 0 whatever the driver reports. With the argument events it runs until its
// standard input ends, and prints one nvml.Event a line, as JSON: each XID or ECC error when it happens,
// every second an event that the driver still answers, and every 5 seconds how each GPU works and the
// processes that compute on the GPUs. It is a separate program because a call of the driver may hang: gangrun
// runs it with a time limit.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/gangrun/gangrun/internal/selfcheck"
	"github.com/gangrun/gangrun/topology/nvml"
)

const usage = `usage: gangrun-nvml                   print what the NVIDIA driver says of the GPUs, as JSON
       gangrun-nvml events [UUID...]  print XID and ECC errors of these GPUs, or of all, and
                                      now and then how they work and the processes that
                                      compute on them, as JSON lines, until standard
                                      input ends
`

func main() {
	os.Exit(run(os.Args[1:], nvml.Driver(), os.Stdin, os.Stdout, os.Stderr))
}

// run is main, and returns the exit status.
func run(args []string, lib nvml.Library, in io.Reader, out, errOut io.Writer) int {
	var err error
	switch {
	case len(args) == 0:
		err = json.NewEncoder(out).Encode(nvml.Read(lib, about))
	case len(args) > 0 && args[0] == "self-check":
		return selfcheck.Main(args[1:])
	case len(args) > 0 && args[0] == "events":
		err = events(lib, args[1:], in, out, errOut)
	case len(args) == 1 && (args[0] == "-h" || args[0] == "--help"):
		_, err = io.WriteString(out, usage)
	default:
		fmt.Fprintf(errOut, "gangrun-nvml: error: it takes no arguments, or the word events and UUIDs of GPUs; not %q\n%s", args, usage)
		return 2
	}
	if err != nil {
		fmt.Fprintf(errOut, "gangrun-nvml: error: %v\n", err)
		return 1
	}
	return 0
}

// events returns nil when in has ended, and an error when events can no longer
// be told of; then it leaves a goroutine behind that reads in, for the program's
// end to take.
func events(lib nvml.Library, uuids []string, in io.Reader, out, errOut io.Writer) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in) // an error is an end too
		cancel()
	}()
	encoder := json.NewEncoder(out)
	tell := func(e nvml.Event) error {
		if e.Kind == nvml.EventProcess {
			e.Origin = origin(e.PID)
		}
		return encoder.Encode(e)
	}
	warn := func(text string) { fmt.Fprintf(errOut, "gangrun-nvml: warning: %s\n", text) }
	return nvml.Watch(ctx, lib, uuids, tell, warn)
}
