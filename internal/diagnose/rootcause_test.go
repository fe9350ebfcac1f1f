package diagnose

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestRootCause(t *testing.T) {
	for _, c := range []struct {
		name      string
		evidence  *gang
		signature string
		rank      int
		text      string // a part of Text
	}{
		{"the others only lost their peer, though they ended first",
			four().says(1, 10, raise("ValueError: bad label 11")).says(0, 10.1, closed).says(2, 10.1, closed).
				exit(0, 10.2, failed).exit(2, 10.3, failed).exit(1, 10.5, failed).exit(3, 11, stopped),
			"python-value-error", 1, "rank 1 on h1: ValueError: bad label 11 (train.py line 88 in step)"},
		{"two failed by themselves: the first one seen",
			four().says(3, 10, raise("KeyError: 'a'")).says(1, 9, raise("ValueError: bad label 11")).exit(3, 10.1, failed).exit(1, 10.2, failed),
			"python-value-error", 1, ""},
		{"without times of lines the first to end",
			four().says(3, 0, raise("KeyError: 'a'")).says(1, 0, raise("ValueError: bad label 11")).exit(3, 10.1, failed).exit(1, 10.2, failed),
			"python-key-error", 3, ""},
		{"two failed for the same reason: the first to end, which the user was told of",
			four().says(3, 10.0001, raise("KeyError: 'a'")).says(1, 10, raise("KeyError: 'a'")).exit(3, 10.1, failed).exit(1, 10.1, failed),
			"python-key-error", 3, ""},
		{"two failed for the same reason, and gangrun ended the first one seen",
			four().says(3, 10.1, raise("KeyError: 'a'")).says(1, 10, raise("KeyError: 'a'")).exit(1, 10.2, stopped).exit(3, 10.1, failed),
			"python-key-error", 3, ""},
		{"two failed for the same reason, one long after the other",
			four().says(3, 15, raise("KeyError: 'a'")).says(1, 10, raise("KeyError: 'a'")).exit(3, 15.1, failed).exit(1, 15.2, failed),
			"python-key-error", 1, ""},
		{"a rank that gangrun ended had failed before",
			four().says(1, 10, raise("ValueError: bad label 11")).says(0, 10.1, closed).exit(0, 10.2, failed).exit(1, 15, stopped),
			"python-value-error", 1, ""},
		{"a rank that gangrun ended is no cause",
			four().says(1, 12, raise("KeyboardInterrupt")).says(0, 10, raise("RuntimeError: the plan says no")).exit(0, 10.2, failed).exit(1, 15, stopped),
			"uncaught-exception", 0, ""},
		{"killed without a word",
			four().says(0, 10.1, closed).exit(1, 10, kill).exit(0, 10.5, failed).exit(2, 11, stopped),
			"sigkill", 1, "rank 1 on h1: killed by SIGKILL (signal 9)"},
		{"killed without a word, seen after the echo",
			four().says(0, 10, closed).exit(0, 10.1, failed).exit(1, 10.2, kill),
			"sigkill", 1, ""},
		{"a word that no rule knows is quoted",
			four().prints(1, 9, "step 1").says(1, 10, "train.py: the config names no \x1b[1mdataset\x1b[0m\n").exit(1, 10, job.Exit{Code: 3}),
			"exit-code", 1, "; its last words are \"train.py: the config names no dataset\"; its output is in rank-0001.err and rank-0001.out"},
		{"killed by mpirun after a silent exit",
			four().exit(1, 10, job.Exit{Code: 3}).exit(0, 10.3, job.Exit{Signal: 15}).exit(2, 10.3, kill),
			"exit-code", 1, "ended with code 3, and nothing that it printed tells why; its output is in rank-0001.err and rank-0001.out"},
		{"a silent exit long after a timeout follows from it",
			four().says(0, 10, timeout).exit(0, 11, job.Exit{Signal: 6}).exit(1, 15, job.Exit{Code: 3}),
			"nccl-timeout", 0, ""},
		{"killed by the kernel",
			four().kernel("h1", 9.9, "Memory cgroup out of memory: Killed process 1001 (python3) total-vm:1kB").says(0, 10.1, closed).exit(1, 10, kill).exit(0, 10.5, failed),
			"oom-killer", 1, "rank 1 on h1: killed by the kernel because the memory of the host or its cgroup was full (Memory cgroup out of memory: Killed process 1001 (python3) total-vm:1kB)"},
		{"the kernel killed another process elsewhere",
			four().kernel("h2", 9.9, "Out of memory: Killed process 1001 (python3)").exit(1, 10, kill),
			"sigkill", 1, ""},
		{"the kernel killed another rank of the host",
			four().kernel("h1", 9.9, "Out of memory: Killed process 1000 (python3)").exit(1, 9, kill).exit(0, 10, kill),
			"sigkill", 1, ""},
		{"the kernel killed something hours ago",
			four().kernel("h1", 1, "Out of memory: Killed process 7 (python3)").exit(1, 9000, kill),
			"sigkill", 1, ""},
		{"a child of the rank's shell was killed by the kernel",
			four().kernel("h1", 9.9, "Out of memory: Killed process 7777 (python3)").says(1, 10, "run.sh: line 3:  7777 Killed    python train.py").exit(1, 10, job.Exit{Code: 137}),
			"oom-killer", 1, ""},
		{"the agent saw the count of kills rise",
			four().oomKills("h1", 10).exit(1, 10, kill),
			"oom-killer", 1, "count of out-of-memory kills rose"},
		{"a data worker was killed by the kernel",
			four().kernel("h1", 9.9, "Out of memory: Killed process 7777 (python3)").says(1, 10, raise("RuntimeError: DataLoader worker (pid 7777) is killed by signal: Killed.")).exit(1, 10.2, failed),
			"oom-killer", 1, ""},
		{"a GPU fell off the bus under one rank",
			four().kernel("h2", 9, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1003, name=python3, GPU has fallen off the bus.").
				says(3, 9.5, raise("RuntimeError: CUDA error: unspecified launch failure")).says(0, 9.9, closed).exit(3, 10, failed).exit(0, 10, failed),
			"xid-fallen-off-bus", 3, "the GPU stopped answering (NVRM: Xid"},
		{"a GPU fault under ranks that only timed out",
			four().kernel("h2", 9, "NVRM: Xid (PCI:0000:3b:00): 94, pid='<unknown>', name=<unknown>, Contained memory error").
				says(0, 600, timeout).says(2, 600, timeout).exit(0, 601, job.Exit{Signal: 6}).exit(2, 601, job.Exit{Signal: 6}),
			"xid-ecc", 2, ""},
		{"a GPU fault does not excuse a KeyError",
			four().kernel("h1", 9, "NVRM: Xid (PCI:0000:3b:00): 94, pid='<unknown>', Contained memory error").says(1, 10, raise("KeyError: 'a'")).exit(1, 10, failed),
			"python-key-error", 1, ""},
		{"a host is lost, noticed after its peers",
			four().says(0, 10, closed).exit(0, 10.2, failed).exit(1, 10.3, stopped).exit(2, 20, job.Exit{Status: job.Lost, Text: "no contact with the host for 10s", Reason: job.ReasonHostSilent}),
			"host-silent", 2, "rank 2 on h2: lost: no contact with the host for 10s"},
		{"a rank left without MPI_Finalize, and Open MPI warns of its peer",
			four().exit(0, 9.3, job.Exit{Fault: "it never called MPI_Finalize", Reason: job.ReasonNoFinalize}).
				says(3, 10, openMPIWarning).lines(job.SourceStderr, "h0", -1, "mpirun.log", 10, openMPIWarning).exit(1, 10.1, stopped).exit(2, 10.1, stopped).exit(3, 10.1, stopped),
			"mpi-no-finalize", 0, ""},
		{"a rank left before MPI_Init, and mpirun says how it ended",
			four().exit(2, 9.3, job.Exit{Fault: "it never called MPI_Init, and the others wait for it there", Reason: job.ReasonNoInit}).
				lines(job.SourceStderr, "h0", -1, "mpirun.log", 9.1, "mpirun has exited due to process rank 2 with PID 0 on\nnode h2 exiting improperly. There are three reasons this could occur:").exit(0, 10.1, stopped).exit(1, 10.1, stopped).exit(3, 10.1, stopped),
			"zero-exit", 2, ""},
		{"a rank left before MPI_Init, and mpirun names another one that gangrun ended",
			four().exit(2, 9.3, job.Exit{Fault: "it never called MPI_Init, and the others wait for it there", Reason: job.ReasonNoInit}).
				lines(job.SourceStderr, "h0", -1, "mpirun.log", 10, "mpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be terminated. The first process to do so was:\n\n  Process name: [[11297,1],3]\n  Exit code:    143").
				exit(0, 10.1, stopped).exit(1, 10.1, stopped).exit(3, 10.1, stopped),
			"zero-exit", 2, ""},
		{"a host is gone, and mpirun noticed it first",
			four().lines(job.SourceStderr, "h0", -1, "mpirun.log", 10, "ORTE has lost communication with a remote daemon.").exit(0, 10.2, stopped).exit(2, 10.1, job.Exit{Status: job.Lost, Text: "the host has closed its connections and does not answer any more", Reason: job.ReasonHostGone}),
			"host-gone", 2, "does not answer any more"},
		{"a rank that could not be started",
			four().exit(2, 1, job.Exit{Status: job.Unstarted, Text: "fork/exec /x/a.out: exec format error"}).exit(0, 1.5, stopped),
			"exec-format", 2, "rank 2 on h2: could not be started: fork/exec /x/a.out: exec format error"},
		{"a rank ended well before another lost its connection to it",
			four().exit(1, 9, job.Exit{}).says(2, 10, closed).exit(2, 10.2, failed).exit(0, 11, stopped).exit(3, 11, stopped),
			"zero-exit", 1, "other ranks still needed it"},
		{"a rank ended well after another had lost a connection",
			four().says(2, 10, closed).exit(2, 10.2, failed).exit(1, 10.5, job.Exit{}).exit(0, 11, stopped).exit(3, 11, stopped),
			"peer-closed", 2, ""},
		{"only echoes: the first",
			four().says(2, 10, closed).says(0, 11, timeout).exit(2, 10.2, failed).exit(0, 11, job.Exit{Signal: 6}),
			"peer-closed", 2, ""},
		{"timeouts, and one rank that did not wait",
			four().says(0, 600, timeout).says(1, 600.1, timeout).says(3, 600.2, timeout).exit(0, 601, job.Exit{Signal: 6}).exit(1, 601, job.Exit{Signal: 6}).exit(3, 601, job.Exit{Signal: 6}).exit(2, 602, stopped),
			"nccl-timeout", 0, "; rank 2 did not wait with the others"},
		{"a crash is no echo",
			four().says(1, 10, "a peer: Connection reset by peer").exit(1, 10.1, job.Exit{Signal: 11}),
			"sigsegv", 1, ""},
		{"an abort after an echo is one",
			four().says(1, 10, "terminate called after throwing an instance of 'gloo::IoException'\n  what():  [../gloo/tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:1").says(0, 9, raise("KeyError: 'a'")).exit(1, 10.1, job.Exit{Signal: 6}).exit(0, 10.5, failed),
			"python-key-error", 0, ""},
		{"a traceback before a crash at the end",
			four().says(1, 10, raise("KeyError: 'a'")+"\nterminate called without an active exception").exit(1, 10.1, job.Exit{Signal: 6}),
			"python-key-error", 1, ""},
		{"a traceback that was survived",
			four().says(1, 10, raise("KeyError: 'a'")).says(1, 11, strings.Repeat("step 1/2 loss 3\n", 80)).exit(1, 100, job.Exit{Signal: 11}),
			"sigsegv", 1, ""},
		{"a traceback that was survived, with the progress on stdout",
			four().says(1, 10, raise("KeyError: 'a'")).prints(1, 30, strings.Repeat("step 1/2 loss 3\n", 80)).exit(1, 100, job.Exit{Code: 4}),
			"exit-code", 1, ""},
		{"retried inside, the last failure counts",
			four().says(1, 10, raise("FileNotFoundError: [Errno 2] No such file or directory: '/cache/x'", "open(cache)")).says(1, 11, "no cache, going on").says(1, 12, raise("KeyError: 'a'")).exit(1, 12.5, failed),
			"python-key-error", 1, ""},
		{"children of one rank: the specific one",
			four().says(1, 10, raise("KeyError: 'a'")).says(1, 10.5, raise("RuntimeError: somebody hung up")).exit(1, 12.5, failed),
			"python-key-error", 1, ""},
		{"what a library printed at the start is not why the rank ended",
			four().says(0, 1, "run.sh: line 3: module: command not found").says(0, 10, closed).says(1, 9.9, raise("ValueError: bad label 11")).exit(0, 10.1, failed).exit(1, 10.2, failed),
			"python-value-error", 1, ""},
		{"nor long before a silent end",
			four().says(1, 1, "run.sh: line 3: module: command not found").exit(1, 500, job.Exit{Code: 3}),
			"exit-code", 1, ""},
		{"nor in a rank that gangrun ended",
			four().says(0, 1, "curl: (6) Could not resolve host: data.example.org").exit(1, 500, job.Exit{Code: 3}).exit(0, 501, stopped),
			"exit-code", 1, ""},
		{"an old echo in a rank that lived on is none",
			four().says(0, 1, "connect: Connection refused, trying again").exit(1, 5000, kill).exit(0, 5001, stopped),
			"sigkill", 1, ""},
		{"SIGTERM from outside",
			four().exit(1, 10, job.Exit{Signal: 15}).exit(0, 10.2, stopped),
			"sigterm", 1, "ended by SIGTERM (signal 15), which did not come from gangrun"},
		{"the code of a child killed by a signal",
			four().exit(1, 10, job.Exit{Code: 139}),
			"sigsegv", 1, "ended by a segmentation fault, SIGSEGV (code 139 is 128 + 11)"},
		{"a core",
			four().exit(1, 10, job.Exit{Signal: 11, Core: true}),
			"sigsegv", 1, "SIGSEGV (signal 11) and left a core"},
		{"a rank was killed while the others were in MPI_Init",
			four().exit(2, 10, kill).prints(0, 9.99, "[1795275974.349863] [n1:11111:0]        mm_posix.c:219  UCX  ERROR   open(file_name=/proc/11107/fd/14 flags=0x0) failed: No such file or directory").
				says(0, 9.995, "Abort(339332623) on node 0 (rank 0 in comm 0): Fatal error in internal_Init: Other MPI error, error stack:\ninternal_Init(59).............: MPI_Init(argc=0x7ffd709e327c, argv=0x7ffd709e3270) failed").
				exit(0, 10.01, job.Exit{Code: 15, Aborted: true}).exit(1, 10.2, stopped),
			"sigkill", 2, "killed by SIGKILL"},
		{"a transport that fails by itself, and a rank that is ended for it",
			four().prints(0, 10, "[1795275974.349863] [n1:11111:0] ib_mlx5.c:100  UCX  ERROR   mlx5dv_devx_create failed").exit(0, 10.01, job.Exit{Code: 15, Aborted: true}).exit(1, 10.2, stopped),
			"mpi-transport", 0, ""},
		{"a transport that failed long before another rank ended",
			four().prints(0, 10, "[1795275974.349863] [n1:11111:0] ib_mlx5.c:100  UCX  ERROR   mlx5dv_devx_create failed").exit(0, 10.01, job.Exit{Code: 15, Aborted: true}).exit(1, 14, kill),
			"mpi-transport", 0, ""},
		{"mpirun's own words, from the agent",
			four().lines(job.SourceAgent, "h1", -1, "", 3, "There are not enough slots available in the system to satisfy the 4").exit(0, 4, job.Exit{Status: job.Unstarted, Text: "mpirun ended"}),
			"mpirun-slots", -1, "There are not enough slots available"},
		{"a host that is down at the start",
			four().exit(2, 1, job.Exit{Status: job.Lost, Text: `host "h2" (port 22, user "root"): no answer within 10s`, Reason: job.ReasonNotReached}).exit(0, 1, job.Exit{Status: job.Unstarted, Stopped: true, Text: "another host cannot be reached"}),
			"not-reached", 2, `rank 2 on h2: its host is not reached: host "h2" (port 22, user "root"): no answer within 10s`},
		{"a rank that nobody saw end",
			&gang{job.Evidence{Ranks: 3, Outcome: job.Outcome{Exits: []job.Exit{{Rank: 0, Host: "h1", Status: job.Exited}}, Unreaped: []job.Unreaped{{Rank: 2, Host: "h2"}}}}},
			"rank-lost", 2, "nobody saw it end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Diagnose(c.evidence.Evidence)
			sane(t, got)
			if got.Signature != c.signature || got.Rank != c.rank || !strings.Contains(got.Text, c.text) {
				t.Errorf("got %s, rank %d, want %s, rank %d: %s", got.Signature, got.Rank, c.signature, c.rank, got.Text)
			}
			if got.Rank >= 0 && got.Host != host(got.Rank) {
				t.Errorf("rank %d on %q", got.Rank, got.Host)
			}
			if len(got.Evidence) == 0 {
				t.Error("no evidence")
			}
		})
	}
}

// TestUnstarted checks ranks that could not be started. The first one reported is the cause, whatever the clocks of the
// hosts say. The hint names what is missing and where.
func TestUnstarted(t *testing.T) {
	for why, want := range map[string]struct{ signature, hint, artefact string }{
		`"trian" is not in PATH: file does not exist`: {"program-missing", "first word of the job's command", "trian"},
		`the working directory "/srv/my wd" cannot be entered: no such file or directory`: {
			"workdir", "make it on h2, where its user may enter it, or name another with --workdir", "/srv/my wd"},
	} {
		unstarted := job.Exit{Status: job.Unstarted, Text: why}
		got := Diagnose(four().exit(2, 10.2, unstarted).exit(0, 10.1, unstarted).exit(3, 10.3, unstarted).Evidence)
		sane(t, got)
		if got.Signature != want.signature || got.Rank != 2 || got.Host != host(2) || got.Artefact != want.artefact ||
			!strings.Contains(got.Hint, strings.ReplaceAll(want.hint, "h2", host(2))) || !strings.Contains(got.Text, why) {
			t.Errorf("%s: got %+v, want %+v of rank 2", why, got, want)
		}
	}
}

// openMPIWarning is what a rank of Open MPI prints if it cannot connect to another rank.
const openMPIWarning = `--------------------------------------------------------------------------
WARNING: Open MPI failed to TCP connect to a peer MPI process.  This
should not happen.

Your Open MPI job may now hang or fail.

  Local host: h2
  PID:        2734
  Message:    connect() to 127.0.0.1:1049 failed
  Error:      Operation now in progress (115)
--------------------------------------------------------------------------`
