//go:build soak

package main_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/testseed"
)

// hangsPage is the document that TestSoakHangMatrix writes with UPDATE=1.
const hangsPage = "../../docs/hangs.md"

// TestSoakHangMatrix makes gangs hang in every way, with every MPI library. gangrun must find each hang and name the
// rank. If UPDATE is 1, the test also writes the table of docs/hangs.md.
func TestSoakHangMatrix(t *testing.T) {
	var rows strings.Builder
	for _, h := range hangs {
		for _, flavour := range h.in() {
			t.Run(h.mode+" "+string(flavour), func(t *testing.T) {
				const rank = 5
				f := h.run(t, flavour, rank)
				if wrong := h.check(f, rank); wrong != "" {
					t.Error(wrong)
				}
				fmt.Fprintf(&rows, "| %s | %s | %.0f s | %s |\n", h.what, flavour, f.took.Seconds(), strings.ReplaceAll(f.report.Text, "|", "\\|"))
			})
		}
	}
	const begin, end = "<!-- matrix: written by UPDATE=1 go test -tags soak -run TestSoakHangMatrix ./cmd/gangrun -->\n", "<!-- end of the matrix -->"
	page, err := os.ReadFile(hangsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the matrix", hangsPage)
	}
	if os.Getenv("UPDATE") == "1" && !t.Failed() {
		table := "| hang | flavour | found after | what gangrun says |\n|---|---|---|---|\n" + rows.String()
		if err := os.WriteFile(hangsPage, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSoakHangs makes COUNT gangs hang in random ways. SEED repeats them. gangrun must find at least 95 % of the hangs
// and name the rank.
func TestSoakHangs(t *testing.T) {
	seed, count := testseed.Number(t, "SEED", uint64(time.Now().UnixNano())), testseed.Number(t, "COUNT", 100)
	random := rand.New(rand.NewPCG(seed, 0))
	wrong := 0
	var slowest time.Duration
	for n := range count {
		h := hangs[random.IntN(len(hangs))]
		flavours := h.in()
		flavour, rank := flavours[random.IntN(len(flavours))], random.IntN(hangRanks)
		t.Run(fmt.Sprintf("%d %s %s %d", n, h.mode, flavour, rank), func(t *testing.T) {
			f := h.run(t, flavour, rank)
			slowest = max(slowest, f.took-time.Duration(f.report.Limit))
			if why := h.check(f, rank); why != "" {
				wrong++
				t.Log(why)
			}
		})
	}
	t.Logf("SEED=%d: %d of %d hangs were found and named; the slowest %s after its limit", seed, int(count)-wrong, count, slowest.Round(time.Millisecond))
	if 20*wrong > int(count) {
		t.Errorf("%d of %d are wrong, want at most 5 %%", wrong, count)
	}
}

// stopped stops processes for a time. This time is what the test is about: it is longer than the limit after which a
// gang without progress counts as hanging.
func stopped(pids []int, d time.Duration) {
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGSTOP) // the process may have ended
	}
	time.Sleep(d)
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGCONT)
	}
}

// TestSoakHealthy runs COUNT random healthy jobs. The processes of some are suspended for a time. SEED repeats them.
// None may count as hanging.
func TestSoakHealthy(t *testing.T) {
	seed, count := testseed.Number(t, "SEED", uint64(time.Now().UnixNano())), testseed.Number(t, "COUNT", 200)
	random := rand.New(rand.NewPCG(seed, 1))
	for n := range count {
		h := healthy[random.IntN(len(healthy))]
		h.pause *= 0.5 + random.Float64()/2
		what, disturb := "", (func(*controlled))(nil)
		pause := time.Duration((1.5 + random.Float64()) * float64(hangTimeout))
		switch random.IntN(6) {
		case 0:
			what, disturb = " everything stopped", func(r *controlled) {
				pids := []int{r.cmd.Process.Pid}
				for _, all := range r.marked() {
					for pid := range all {
						pids = append(pids, pid)
					}
				}
				stopped(pids, pause)
			}
		case 1:
			what, disturb = " a host stopped", func(r *controlled) {
				found := r.tree()
				pids := []int{found.agents[0]}
				for i := 0; i < len(pids); i++ {
					pids = append(pids, children(pids[i])...)
				}
				stopped(pids, pause)
			}
		}
		t.Run(fmt.Sprintf("%d %s %.1f%s", n, h.kind, h.pause, what), func(t *testing.T) {
			if wrong := h.run(t, disturb); wrong != "" {
				t.Error(wrong)
			}
		})
	}
	t.Logf("SEED=%d: %d healthy jobs", seed, count)
}
