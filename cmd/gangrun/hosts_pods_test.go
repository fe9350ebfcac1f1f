package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
)

// fakeKubectl is a kubectl whose pods are the hosts with the same names. For other pods, it fails as kubectl does.
const fakeKubectl = `#!/bin/sh
case "$1 $2 $4 $5 $6 $3" in
"exec -i -- sh -c h"[0-9]*) exec ssh -T "$3" "$7" ;;
*" closed") echo 'Error from server (Forbidden): pods "closed" is forbidden: User "u" cannot create resource "pods/exec"' >&2 ;;
*" killed") echo 'command terminated with exit code 137' >&2; exit 137 ;;
*" ended") echo 'Error from server (NotFound): container not found ("main")' >&2 ;;
*) echo "Error from server (NotFound): pods \"$3\" not found" >&2 ;;
esac
exit 1
`

// inPod returns a script that runs gangrun as in a launcher pod of the MPI Operator v1, with fakeKubectl.
func inPod(t *testing.T, hostfile string) string {
	t.Helper()
	gangrun, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"kubectl":  fakeKubectl,
		"hostfile": hostfile,
		"gangrun": fmt.Sprintf("#!/bin/sh\nPATH=%s:$PATH OMPI_MCA_plm_rsh_agent=/etc/mpi/kubexec.sh OMPI_MCA_orte_default_hostfile=%s exec %s \"$@\"\n",
			dir, filepath.Join(dir, "hostfile"), gangrun),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "gangrun")
}

// TestPods checks that gangrun in a launcher pod of the MPI Operator v1 uses the pods of the hostfile. The gang must
// survive when every kubectl, or the controller, is killed.
func TestPods(t *testing.T) {
	t.Parallel()
	bed := testhosts.Up(t, 2)
	r := &farRun{t: t, bed: bed, gangrun: inPod(t, "h1 slots=2\nh2 slots=2\n"), program: farPrograms[0], steps: 60}
	args := []string{"run", "-n", "4", "--mpi", string(r.program.mpi), "--output", "none", "--preflight", "off", "--retries", "0", "--orphan-grace", patience.String(), "--"}
	r.control(append(args, heldBack(bed, r.program.command(t, bed, r.steps))...)...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("gangrun said:\n%s", r.errs.String())
		}
	})
	for lines := range 3 {
		r.lines(4, 1+10*lines)
		r.killKubectl(2)
	}
	r.lines(4, 30)
	r.killController(r.cmd)
	second := r.attach()
	r.journalled(job.KindAttached, 1)
	r.letGo()
	if code := second.finish(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	r.untouched(4)
	r.nothingLeft()
}

// killKubectl waits until the controller has n children that are kubectl, and kills them.
func (r *farRun) killKubectl(n int) {
	r.t.Helper()
	var found []int
	r.comes(fmt.Sprintf("%d processes of kubectl", n), func() bool {
		found = nil
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", r.cmd.Process.Pid))
		for _, file := range tasks {
			data, _ := os.ReadFile(file)
			for _, field := range strings.Fields(string(data)) {
				words, _ := os.ReadFile(filepath.Join("/proc", field, "cmdline"))
				if pid, err := strconv.Atoi(field); err == nil && bytes.HasPrefix(words, []byte("ssh\x00-T\x00")) {
					found = append(found, pid)
				}
			}
		}
		return len(found) >= n
	})
	for _, pid := range found {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			r.t.Error(err)
		}
	}
}

// TestPodsUnreached checks what gangrun says, and which hint it gives, for each way in which kubectl may fail.
func TestPodsUnreached(t *testing.T) {
	t.Parallel()
	gangrun := inPod(t, "pi-worker-0 slots=1\npi-worker-1 slots=1\n")
	run := func(path string, args ...string) (code int, errs string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, "env", append([]string{"PATH=" + path, "GANGRUN_HOME=" + filepath.Join(t.TempDir(), "home"), gangrun, "run", "-n", "1", "--preflight", "off"}, args...)...)
		out, err := cmd.CombinedOutput()
		if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), string(out)
	}
	for name, c := range map[string]struct {
		args        []string
		code        int
		error, hint string
	}{
		"no pod": {[]string{"--hosts", "gone"}, 69,
			`no host can be reached: pod "gone": kubectl exec: Error from server (NotFound): pods "gone" not found`, "names of pods in one namespace; see: kubectl get pods\n"},
		"no pod of the hostfile": {nil, 69,
			`pod "pi-worker-0": kubectl exec: Error from server (NotFound): pods "pi-worker-0" not found; pod "pi-worker-1": kubectl exec: `, "hint       the hosts of --launcher kubectl are names of pods in one namespace; see: kubectl get pods\n"},
		"forbidden": {[]string{"--hosts", "closed"}, 69,
			`no host can be reached: pod "closed": kubectl exec: Error from server (Forbidden): pods "closed" is forbidden`, "see: kubectl auth can-i create pods/closed --subresource=exec\n"},
		"not running": {[]string{"--hosts", "ended"}, 69,
			`no host can be reached: pod "ended": kubectl exec: Error from server (NotFound): container not found ("main")`, "see why the pod does not run: kubectl describe pod ended\n"},
		"killed": {[]string{"--hosts", "killed"}, 69,
			`pod "killed": gangrun does not answer there: the shell ended with code 137`, "see whether the container was ended: kubectl describe pod killed; to test the connection: kubectl exec -i killed -- true\n"},
		"a user": {[]string{"--hosts", "alice@gone"}, 64,
			"alice@gone: kubectl exec runs programs as the user of the container", "write the name of the pod alone: gone\n"},
	} {
		code, errs := run(os.Getenv("PATH"), append(c.args, "--", "true")...)
		if code != c.code || !strings.Contains(errs, c.error) || !strings.Contains(errs, c.hint) {
			t.Errorf("%s: exit code %d, want %d, and it said:\n%s", name, code, c.code, errs)
		}
	}
	if err := os.Remove(filepath.Join(filepath.Dir(gangrun), "kubectl")); err != nil {
		t.Fatal(err)
	}
	code, errs := run("/bin/nowhere", "--launcher", "kubectl", "--hosts", "gone", "--", "true")
	if code != 69 || !strings.Contains(errs, "gangrun: error: kubectl is not in a directory of PATH, and is not /opt/kube/kubectl\ngangrun: hint: install kubectl, or add its directory to PATH; or use --launcher ssh\n") {
		t.Errorf("without kubectl: exit code %d, and it said:\n%s", code, errs)
	}
}
