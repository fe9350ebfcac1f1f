package main_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/gangrun/gangrun/internal/noskip"
)

// stranger is a user who shares nothing with the one that runs the tests.
const stranger = 65534

// gpuGangs has two users start so many gangs at once on two pretended hosts of
// eight GPUs. Every rank marks its GPUs while it runs: two marks of one GPU are a
// GPU held twice.
func gpuGangs(t *testing.T, random *rand.Rand, gangs int) {
	t.Helper()
	if os.Getuid() != 0 {
		noskip.Skip(t, "only root can act for another user")
	}
	gangrun, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"leases": 0o777 | os.ModeSticky, "marks": 0o777, "0": 0o755, strconv.Itoa(stranger): 0o755} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(filepath.Join(dir, strconv.Itoa(stranger)), stranger, stranger); err != nil {
		t.Fatal(err)
	}
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) { // the stranger must get there
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Dir(gangrun), 0o755); err != nil {
		t.Fatal(err)
	}
	inventory := filepath.Join(dir, "lab.yaml")
	if err := os.WriteFile(inventory, []byte("hosts:\n  - {name: h1, gpus: 8}\n  - {name: h2, gpus: 8}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const script = `for gpu in $(echo "$CUDA_VISIBLE_DEVICES" | tr , " "); do
	mkdir "marks/$0-$gpu" || exit 9
done
sleep "$1"
for gpu in $(echo "$CUDA_VISIBLE_DEVICES" | tr , " "); do rmdir "marks/$0-$gpu"; done`
	var wg sync.WaitGroup
	for i := range gangs {
		uid := []int{0, stranger}[i%2]
		home := filepath.Join(dir, strconv.Itoa(uid))
		cmd := exec.Command(gangrun, "run", "--loopback", "2", "--inventory", inventory, "-n", strconv.Itoa(1+random.IntN(8)),
			"--gpus-per-rank", strconv.Itoa(1+random.IntN(1+i%2)), "--patience", "100ms", "--preflight", "off", "--retries", "0", "--grace", "1s", "--timeout", "3m",
			"--workdir", dir, "--", "sh", "-c", script, "{{.Host}}", fmt.Sprintf("0.%d", random.IntN(4)))
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "GANGRUN_HOME=" + filepath.Join(home, "runs"), "GANGRUN_LEASE_DIR=" + filepath.Join(dir, "leases")}
		if uid != 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
		}
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		wg.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Errorf("%v: %v\n%s", cmd.Args[3:9], err, said.String())
			}
		})
	}
	wg.Wait()
	left, err := os.ReadDir(filepath.Join(dir, "marks"))
	if err != nil || len(left) > 0 {
		t.Errorf("marks %v, %v, want none", left, err)
	}
}

// TestGPUGangs: no GPU is held twice, and everybody gets a turn.
func TestGPUGangs(t *testing.T) {
	gpuGangs(t, rand.New(rand.NewPCG(1, 2)), 10)
}
