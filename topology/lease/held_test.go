package lease

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestKilledHolderLeavesNothing(t *testing.T) {
	dir := directory(t)
	s := open(t, dir, "")
	devices := gpus(3)
	h := start(t, 0, order{Dir: dir, Request: req("dies", 9, devices, 2, "GPU0", "GPU2")})
	h.want(t, "held")
	turn := turnOf(t, s)
	refused(t, turn, req("next", 5, devices, 3, devices...))
	h.kill()
	if got := states(t, dir); got["GPU0"] != StateDead || got["GPU2"] != StateDead {
		t.Errorf("after the kill: %v", got)
	}
	next := take(t, s, req("next", 5, devices, 2, "GPU0", "GPU1"))
	gone, err := Release(t.Context(), dir)
	if err != nil || len(gone) != 1 || len(gone[0].Leases) != 1 || gone[0].Leases[0].Device != "GPU2" || gone[0].Leases[0].Owner.Run != "dies" {
		t.Errorf("released %+v, %v", gone, err)
	}
	if got := states(t, dir); got["GPU0"] != StateHeld || got["GPU2"] != StateFree {
		t.Errorf("after the release of the dead: %v", got)
	}
	if next.Err() != nil {
		t.Error(next.Err())
	}
}

func TestChildrenDoNotInheritLeases(t *testing.T) {
	dir := directory(t)
	s := open(t, dir, "")
	held := take(t, s, req("parent", 9, gpus(1), 1, "GPU0"))
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	take(t, s, req("next", 5, gpus(1), 1, "GPU0"))
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", child.Process.Pid))
	if err != nil || len(fds) == 0 {
		t.Fatalf("the child's files: %v, %v", fds, err)
	}
	for _, fd := range fds {
		if target, _ := os.Readlink(fd); strings.HasPrefix(target, dir) {
			t.Errorf("the child has %s", target)
		}
	}
}

func TestLossIsNoticed(t *testing.T) {
	for name, spoil := range map[string]func(string) error{
		"removed":  os.Remove,
		"replaced": func(path string) error { return os.Rename(path+".new", path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := directory(t)
			s := open(t, dir, "")
			s.pulse = time.Millisecond
			held := take(t, s, req("r", 9, gpus(2), 2, gpus(2)...))
			select {
			case <-held.Done():
				t.Fatal("lost at once")
			default:
			}
			path := s.path(kindGPU, "GPU1")
			if err := os.WriteFile(path+".new", nil, 0o666); err != nil {
				t.Fatal(err)
			}
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			select {
			case <-held.Done():
			case <-time.After(time.Minute):
				t.Fatal("the loss is not noticed")
			}
			if err := held.Err(); err == nil || !strings.Contains(err.Error(), `"GPU1"`) {
				t.Errorf("the loss is told as %v", err)
			}
		})
	}
	held := take(t, open(t, directory(t), ""), req("r", 9, gpus(1), 1, "GPU0"))
	held.Release()
	<-held.Done()
	if err := held.Err(); err != nil {
		t.Errorf("a lease that was released is %v", err)
	}
}
