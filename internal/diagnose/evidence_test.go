package diagnose

import (
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// gang builds the evidence of an attempt step by step. Times are in seconds after a fixed moment.
type gang struct{ job.Evidence }

func at(seconds float64) time.Time {
	return time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

func host(rank int) string { return []string{"h1", "h2"}[rank/2%2] }

func (g *gang) exit(rank int, seconds float64, e job.Exit) *gang {
	e.Rank, e.Host, e.Time, e.PID = rank, host(rank), at(seconds), 1000+rank
	if e.Status == "" {
		e.Status = job.Exited
		if e.Signal > 0 {
			e.Status = job.Signalled
		}
	}
	g.Outcome.Exits = append(g.Outcome.Exits, e)
	return g
}

// says adds lines on a rank's stderr, all seen at the same time. The time is not known if seconds is 0.
func (g *gang) says(rank int, seconds float64, text string) *gang {
	return g.lines(job.SourceStderr, host(rank), rank, job.LogName(rank, "err"), seconds, text)
}

func (g *gang) prints(rank int, seconds float64, text string) *gang {
	return g.lines(job.SourceStdout, host(rank), rank, job.LogName(rank, "out"), seconds, text)
}

func (g *gang) kernel(host string, seconds float64, text string) *gang {
	return g.lines(job.SourceKernel, host, -1, "", seconds, text)
}

// oomKills adds the record that a host's count of out-of-memory kills has risen.
func (g *gang) oomKills(host string, seconds float64) *gang {
	g.lines(job.SourceKernel, host, -1, "/proc/vmstat", seconds, "oom_kill count rose by 1 during the attempt")
	g.Lines[len(g.Lines)-1].Reason = job.ReasonOOMKills
	return g
}

func (g *gang) lines(source job.Source, host string, rank int, file string, seconds float64, text string) *gang {
	var t time.Time
	if seconds > 0 {
		t = at(seconds)
	}
	n := 0
	for _, l := range g.Lines {
		if l.File == file {
			n = l.Line
		}
	}
	for _, l := range strings.Split(text, "\n") {
		n++
		g.Lines = append(g.Lines, job.Line{Source: source, Host: host, Rank: rank, File: file, Line: n, Time: t, Text: l})
	}
	return g
}

func four() *gang { return &gang{job.Evidence{Ranks: 4}} }

var (
	closed  = raise("RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:14223", "dist.all_reduce(t)")
	timeout = "[E ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600020 milliseconds before timing out."
	failed  = job.Exit{Code: 1}
	kill    = job.Exit{Signal: 9}
	stopped = job.Exit{Signal: 15, Stopped: true}
)
