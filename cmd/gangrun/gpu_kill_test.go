package main_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"
)

// gpuKill is a kill -9 of a process of a gang at a certain moment.
type gpuKill struct {
	victim string
	when   string        // a key of gpuMoments
	after  time.Duration // time after that moment or, for "any", after the start of the gang
	hit    bool
	at     time.Time // the time of the kill
}

// gpuMoments has the moments at which a process is killed, and which processes a gang has then.
var gpuMoments = map[string][]string{
	"any":       {"controller", "agent", "watchdog", "rank"},
	"waiting":   {"controller", "agent", "watchdog"},
	"holding":   {"controller", "agent", "watchdog"},
	"launching": {"controller", "agent", "watchdog", "rank"},
	"running":   {"controller", "agent", "watchdog", "rank"},
}

func newGPUKill(random *rand.Rand) *gpuKill {
	k := &gpuKill{when: []string{"any", "waiting", "holding", "launching", "running"}[random.IntN(5)]}
	k.victim = gpuMoments[k.when][random.IntN(len(gpuMoments[k.when]))]
	most := 30 * time.Millisecond
	if k.when == "any" {
		most = 2 * time.Second
	}
	k.after = time.Duration(random.Int64N(int64(most)))
	return k
}

func (k *gpuKill) String() string {
	if k == nil {
		return "none"
	}
	return k.victim + " while " + k.when
}

// lost reports whether the controller of the gang was killed.
func (g *gpuGang) lost() bool { return g.kill != nil && g.kill.hit && g.kill.victim == "controller" }

// now reports whether the moment of the kill has come or is over.
func (k *gpuKill) now(g *gpuGang, scene gpuScene) bool {
	holds := scene.holds[g.cmd.Process.Pid] > 0
	switch k.when {
	case "any":
		return true
	case "waiting":
		return holds || scene.waits(g.cmd.Process.Pid)
	case "holding":
		return holds
	case "launching":
		return holds && len(g.tree().leaders) > 0
	}
	return holds && len(g.tree().leaders) == g.need.ranks
}

// carryOut kills the victim at its moment, unless the gang ends before that.
func (r *gpuRound) carryOut(g *gpuGang) {
	k := g.kill
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	ready := time.Time{}
	for {
		select {
		case <-g.exited:
			return
		case <-tick.C:
		}
		if scene, _ := r.watch.now(); ready.IsZero() && k.now(g, scene) {
			ready = time.Now()
			if k.when == "any" {
				ready = g.started
			}
		}
		if ready.IsZero() || time.Since(ready) < k.after {
			continue
		}
		if k.find(g) == 0 {
			continue
		}
		// Ranks that start from now on end by themselves, but not before the kill. Ranks that started earlier do not
		// end by themselves. But find has found a victim without which they must end.
		r.create("go/" + g.name).Close()
		pid := k.find(g)
		if pid == 0 {
			continue
		}
		if k.victim == "controller" {
			r.create("killed/" + g.name).Close()
		}
		at := time.Now()
		if g.strike(pid, unix.SIGKILL) {
			k.hit, k.at = true, at
			r.create("hit/" + g.name).Close()
			return
		}
	}
}

// find returns the PID of the victim, or 0 if there is no such process yet. If the gang has ranks, the victim belongs
// to a host with ranks. If there are several such processes, the number of the gang chooses one of them.
func (k *gpuKill) find(g *gpuGang) int {
	if k.victim == "controller" {
		return g.cmd.Process.Pid
	}
	found := g.tree()
	of, up := found.leaders, 0
	switch {
	case k.victim == "agent" && len(of) == 0:
		of = found.agents
	case k.victim == "watchdog" && len(of) == 0:
		of = found.watchdogs
	case k.victim == "agent":
		up = 1
	case k.victim == "watchdog":
		up = 2
	}
	if len(of) == 0 {
		return 0
	}
	pid := of[g.number%len(of)]
	for range up {
		pid = parent(pid)
	}
	return pid
}

// check returns an error if the exit code of the gang is wrong.
func (g *gpuGang) check() error {
	code := g.cmd.ProcessState.ExitCode()
	switch {
	case g.kill == nil || !g.kill.hit:
		if code != 0 {
			return fmt.Errorf("it ended with %s", g.cmd.ProcessState)
		}
	case g.lost():
		if code != -1 && code != 0 { // 0 if gangrun was killed after it had ended the run
			return fmt.Errorf("its controller was killed, and it ended with %s", g.cmd.ProcessState)
		}
	case code == -1:
		return fmt.Errorf("its %s was killed, and its controller ended with %s", g.kill, g.cmd.ProcessState)
	case code == 0 && (g.kill.when == "launching" || g.kill.when == "running"):
		return fmt.Errorf("its %s was killed, and it ended well", g.kill)
	}
	return nil
}
