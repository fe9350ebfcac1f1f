package main_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/noskip"
	"github.com/gangrun/gangrun/topology/lease"
)

// stranger is a user who shares nothing with the user that runs the tests.
const stranger = 65534

// gpuHosts has the simulated hosts, and the number of GPUs of each.
var gpuHosts = map[string]int{"h1": 8, "h2": 8}

// gpuRank is the program of a rank. For each of its GPUs, it has the lock of a file that is named after the GPU and
// the rank. Processes that it starts have the locks, too. If it finds that another rank has such a lock for the same
// GPU, both ranks share the GPU. Ranks of a killed controller may share a GPU for a while, because the leases of their
// gang end before they do; gpuRank waits for them. The arguments are the name of the gang, the host, how long the rank
// runs, how it ends, and what it leaves behind.
const gpuRank = `gang=$0 host=$1 keep=$2 how=$3 behind=$4
fd=3
for gpu in $(echo "$GANGRUN_GPUS" | tr , ' '); do
	mine=marks/$host-$gpu.$gang.$GANGRUN_ATTEMPT.$RANK
	eval "exec $fd<>\"\$mine\"" && flock $fd || exit 8
	for other in marks/$host-$gpu.*; do
		[ "$other" != "$mine" ] || continue
		since=
		until flock -s -n 9 9<"$other"; do
			name=${other#*.}
			name=${name%%.*}
			if [ ! -e "killed/$name" ] || [ "$name" = "$gang" ]; then
				echo "double-held: $mine $other" | tee -a doubles >&2
				exit 9
			fi
			since=${since:-$(date +%s%3N)}
			sleep 0.01
		done
		[ -z "$since" ] || echo $(($(date +%s%3N) - since)) >> overlaps
	done
	fd=$((fd+1))
done
[ "$fd" -gt 3 ] || exit 7
: > "ready/$gang.$RANK"
[ "$behind" = nothing ] || setsid sleep 1000 <&- &
case $how in
held) until [ -e "go/$gang" ]; do sleep 0.05; done ;;
doomed)
	[ -e "go/$gang" ] || { [ "$behind" = nothing ] || trap '' TERM; exec sleep 1000; }
	until [ -e "hit/$gang" ]; do sleep 0.05; done
	;;
esac
exec sleep "$keep"`

// gpuGang is one gang of a round.
type gpuGang struct {
	*controlled
	number  int
	name    string
	uid     int
	need    gpuNeed
	kill    *gpuKill // nil if no process of the gang is killed
	started time.Time
	said    strings.Builder
}

// gpuRound is a round in which two users start gangs at the same time on two simulated hosts. Meanwhile, one gang holds
// some GPUs until no other gang can start without them.
type gpuRound struct {
	*bench
	random *rand.Rand
	gangs  []*gpuGang
	watch  *gpuWatch
	all    sync.WaitGroup
}

// gpuFigures has the results of rounds.
type gpuFigures struct {
	rounds, gangs int
	blocked       int            // number of rounds in which gangs waited for the first gang
	kills         map[string]int // number of kills by victim and moment
	missed        int            // number of gangs that ended before they could be killed
	longest       time.Duration  // the longest time that a gang waited for GPUs
	idled         time.Duration  // the longest time that a gang was seen to wait although it could have started
	overlap       time.Duration  // the longest time that ranks of a killed controller were seen on GPUs of other gangs
	overlaps      int
	looks         int
}

func (f *gpuFigures) String() string {
	kills := 0
	for _, n := range f.kills {
		kills += n
	}
	return fmt.Sprintf("%d rounds, %d gangs, %d kills %v and %d too late; longest wait %s; in %d looks none that could start was seen waiting for more than %s, and in %d rounds others waited to the end for the gang that holds; ranks of killed controllers were met %d times, at most for %s",
		f.rounds, f.gangs, kills, f.kills, f.missed, f.longest.Round(time.Millisecond), f.looks, f.idled.Round(time.Millisecond), f.blocked, f.overlaps, f.overlap)
}

// roundLimit limits the time of a round. A round that takes longer hangs, even on a slow machine.
const roundLimit = 3 * time.Minute

// gpuGangs runs one round with a number of gangs. It kills processes of some of them.
func gpuGangs(t *testing.T, random *rand.Rand, gangs, kills int, figures *gpuFigures) {
	t.Helper()
	if os.Getuid() != 0 {
		noskip.Skip(t, "only root can act for another user")
	}
	r := &gpuRound{bench: newBench(t), random: random}
	r.layOut()
	r.watch = newGPUWatch(filepath.Join(r.dir, "leases"), gpuHosts)
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { r.watch.run(ctx) })
	defer watching.Wait()
	defer stop()
	defer r.end()

	first := r.start("held", nil)
	r.until("the first gang has its GPUs", func() bool {
		ready, err := os.ReadDir(filepath.Join(r.dir, "ready"))
		return err == nil && len(ready) == first.need.ranks
	})
	doomed := map[int]bool{}
	for _, i := range random.Perm(gangs - 1)[:kills] {
		doomed[i] = true
	}
	for i := range gangs - 1 {
		if doomed[i] {
			r.start("doomed", newGPUKill(random))
		} else {
			r.start("ends", nil)
		}
	}
	figures.blocked += r.settle(first)
	r.create("go/" + first.name).Close()
	r.until("every gang has ended", func() bool { return len(r.alive()) == 0 })
	r.all.Wait()
	stop()
	watching.Wait()
	r.check(figures)
}

// layOut makes the files and directories that the gangs of both users need.
func (r *gpuRound) layOut() {
	t := r.t
	for name, mode := range map[string]os.FileMode{"leases": 0o777 | os.ModeSticky, "marks": 0o777, "ready": 0o777, "killed": 0o755, "go": 0o755, "hit": 0o755, "0": 0o755, strconv.Itoa(stranger): 0o755} {
		path := filepath.Join(r.dir, name)
		if err := errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(filepath.Join(r.dir, strconv.Itoa(stranger)), stranger, stranger); err != nil {
		t.Fatal(err)
	}
	// The stranger must be able to enter the directories.
	for at := r.dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Dir(r.binary), 0o755); err != nil {
		t.Fatal(err)
	}
	lab := "hosts:\n"
	for _, host := range slices.Sorted(maps.Keys(gpuHosts)) {
		lab += fmt.Sprintf("  - {name: %s, gpus: %d}\n", host, gpuHosts[host])
	}
	if err := os.WriteFile(filepath.Join(r.dir, "lab.yaml"), []byte(lab), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"doubles", "overlaps"} {
		f := r.create(name)
		if err := errors.Join(f.Chmod(0o666), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// as returns a command that runs gangrun with these arguments, as a user of the round.
func (r *gpuRound) as(uid int, args ...string) *exec.Cmd {
	home := filepath.Join(r.dir, strconv.Itoa(uid))
	cmd := exec.Command(r.binary, args...)
	cmd.Dir = r.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "GANGRUN_HOME=" + filepath.Join(home, "runs"),
		lease.Env + "=" + filepath.Join(r.dir, "leases"), ownMark + "=" + r.mark}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	return cmd
}

// start starts another gang. how is "held" for a gang that holds its GPUs until its file in go exists, "doomed" for a
// gang that does not end before a process of it was killed, and "ends" for a gang that ends by itself.
func (r *gpuRound) start(how string, kill *gpuKill) *gpuGang {
	r.t.Helper()
	g := &gpuGang{number: len(r.gangs), name: fmt.Sprintf("g%02d", len(r.gangs)), uid: []int{0, stranger}[len(r.gangs)%2], kill: kill}
	g.need = gpuNeed{ranks: 1 + r.random.IntN(8), gpus: 1 + r.random.IntN(2)}
	if how == "held" { // leaves GPUs for other gangs
		g.need = gpuNeed{ranks: 4 + r.random.IntN(9), gpus: 1}
	}
	behind := []string{"nothing", "a process"}[r.random.IntN(2)]
	cmd := r.as(g.uid, "run", "--name", g.name, "--loopback", strconv.Itoa(len(gpuHosts)), "--inventory", filepath.Join(r.dir, "lab.yaml"),
		"-n", strconv.Itoa(g.need.ranks), "--gpus-per-rank", strconv.Itoa(g.need.gpus), "--patience", "100ms", "--preflight", "off", "--retries", "0",
		"--grace", "1s", "--timeout", roundLimit.String(), "--workdir", r.dir, "-e", jobMark+"="+r.mark,
		"--", "sh", "-c", gpuRank, g.name, "{{.Host}}", fmt.Sprintf("0.%d", r.random.IntN(4)), how, behind)
	g.controlled = &controlled{bench: r.bench, cmd: cmd, exited: make(chan struct{}), agents: map[int]bool{}}
	cmd.Stdout, cmd.Stderr = &g.said, &g.said
	// Processes that outlive gangrun keep the pipe of its output open. Wait must not wait for them.
	cmd.WaitDelay = goneLimit
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	g.started = time.Now()
	r.watch.gang(g.name, cmd.Process.Pid, g.need)
	r.gangs = append(r.gangs, g)
	r.all.Go(func() {
		defer close(g.exited)
		_ = cmd.Wait() // the exit code is in ProcessState
	})
	if kill != nil {
		r.all.Go(func() { r.carryOut(g) })
	}
	return g
}

// alive returns the PIDs of the controllers that have not ended.
func (r *gpuRound) alive() (pids []int) {
	for _, g := range r.gangs {
		select {
		case <-g.exited:
		default:
			pids = append(pids, g.cmd.Process.Pid)
		}
	}
	return pids
}

// until waits for a condition. It ends a round that hangs, or in which something wrong was seen.
func (r *gpuRound) until(what string, ok func() bool) {
	r.t.Helper()
	tick := time.NewTicker(gpuLookEvery)
	defer tick.Stop()
	for deadline := time.After(roundLimit); !ok(); {
		select {
		case <-tick.C:
		case <-deadline:
			scene, _ := r.watch.now()
			r.t.Fatalf("waited %s in vain until %s; alive are %v: %+v", roundLimit, what, r.alive(), scene)
		}
		r.watch.mu.Lock()
		faults := r.watch.faults
		r.watch.mu.Unlock()
		if len(faults) > 0 {
			r.t.Fatalf("before %s: %s", what, strings.Join(faults, "\n"))
		}
	}
}

// settle waits until, several times in a row, only the first gang holds GPUs and no other gang could start. It returns
// 1 if there is another gang, and otherwise 0.
func (r *gpuRound) settle(first *gpuGang) int {
	needs := map[int]gpuNeed{}
	for _, g := range r.gangs {
		needs[g.cmd.Process.Pid] = g.need
	}
	quiet, before, blocked := 0, 0, 0
	r.until("no gang but the first holds GPUs, and none can start", func() bool {
		scene, looks := r.watch.now()
		if looks == before {
			return false
		}
		before = looks
		alive := r.alive()
		if quiet++; !scene.quiet(alive, first.cmd.Process.Pid, needs) {
			quiet = 0
		}
		blocked = min(1, len(alive)-1)
		return quiet >= 5
	})
	return blocked
}

// end kills the processes that a failed round has left, and waits for them.
func (r *gpuRound) end() {
	for _, pids := range r.marked() {
		for pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	r.all.Wait()
	if !r.t.Failed() {
		return
	}
	for _, g := range r.gangs {
		said := g.said.String()
		r.t.Logf("%s: process %d of user %d needs %+v, kill %v: %s\n%s", g.name, g.cmd.Process.Pid, g.uid, g.need, g.kill, g.cmd.ProcessState, said[max(0, len(said)-1500):])
	}
}

// TestGPUGangs checks that no two gangs hold the same GPU. A GPU must not be idle for long if a gang could have it
// under the ticket rule. Every gang must get its turn, and killed gangs must leave nothing.
func TestGPUGangs(t *testing.T) {
	const seed = 195 // with this seed, every kind of victim and every moment occurs
	figures := &gpuFigures{kills: map[string]int{}}
	for i, c := range []struct{ gangs, kills int }{{6, 0}, {7, 4}} {
		gpuGangs(t, rand.New(rand.NewPCG(seed, uint64(i))), c.gangs, c.kills, figures)
	}
	t.Log(figures)
}
