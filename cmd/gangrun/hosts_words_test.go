package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
)

// TestHostsMPIRunLog checks that the output of mpirun on one host, and that of Open MPI's daemon on another, are
// beside the logs of the ranks, byte for byte. That must also be so after connections broke, or after another
// controller has taken over.
func TestHostsMPIRunLog(t *testing.T) {
	t.Parallel()
	const ranks, steps = 4, 20 // the ranks run for two seconds
	program := farPrograms[1]
	for _, test := range []struct {
		name string
		do   func(r *farRun) error
	}{
		{"undisturbed", func(r *farRun) error { r.letGo(); return nil }},
		{"without connections at the end", func(r *farRun) error {
			var err error
			for _, h := range r.bed.Hosts() {
				err = errors.Join(err, h.StopSSH())
			}
			r.letGo()
			r.noRanks()
			for _, h := range r.bed.Hosts() {
				err = errors.Join(err, h.StartSSH())
			}
			return err
		}},
		{"attached", func(r *farRun) error {
			err := syscall.Kill(r.cmd.Process.Pid, syscall.SIGKILL)
			<-r.exited
			r.control("attach")
			r.journalled(job.KindAttached, 1)
			r.letGo()
			return err
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			bed := testhosts.Up(t, 2)
			command := heldBack(bed, program.command(t, bed, steps))
			r := startFarCommand(t, bed, "h1:2,h2:2", ranks, job.MPIOpenMPI, command, "--retries", "0",
				"--host-timeout", patience.String(), "--orphan-grace", patience.String(),
				"-e", "OMPI_MCA_orte_debug_daemons=1", "-e", "OMPI_MCA_orte_debug=1")
			if !r.await("lines of every rank", func() bool {
				for rank := range ranks {
					if bytes.Count(r.log(rank, "out"), []byte{'\n'}) < 3 {
						return false
					}
				}
				return true
			}) {
				t.Fatal("gangrun has ended before the gang ran")
			}
			logs := []string{"mpirun.log", "daemon-h2.log"}
			on := func(i int, line string) string {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				out, err := bed.Hosts()[i].Exec(ctx, "sh", "-c", line)
				if err != nil {
					t.Fatalf("%s on h%d: %v", line, i+1, err)
				}
				return out
			}
			for i, name := range logs { // a link, because the agent removes its logs at its end
				on(i, fmt.Sprintf("ln /tmp/gangrun-*/*/logs/%s/1/%s /tmp/kept", filepath.Base(r.home()), name))
			}
			if err := test.do(r); err != nil {
				t.Fatal(err)
			}
			if code := r.finish(); code != 0 {
				t.Fatalf("exit code %d", code)
			}
			r.nothingLeft()
			for i, name := range logs {
				got, err := os.ReadFile(filepath.Join(r.home(), "attempts/1", name))
				if err != nil {
					t.Fatal(err)
				}
				if want := on(i, "cat /tmp/kept"); strings.TrimSpace(string(got)) != strings.TrimSpace(want) || !strings.Contains(want, "sess_dir_finalize") {
					t.Errorf("%s has %d bytes:\n%s\nwant %d:\n%s", name, len(got), got, len(want), want)
				}
			}
		})
	}
}
