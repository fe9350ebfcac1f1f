package roster

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestCensus checks that the lowest rank of a host is found.
func TestCensus(t *testing.T) {
	for _, c := range []struct {
		name, text, host string
		want             int
	}{
		{"a list of Slurm", "srun: error: n2: tasks 8-11: Killed\nsrun: error: n1: tasks 0-7: Terminated", "n2", 8},
		{"the rest", "srun: error: n1: tasks 0-1: Terminated\nsrun: error: n3: tasks 4-5: Terminated", "n2", 2},
		{"ranks of a pod", "pod fit-worker-1 (ranks 4-7) marked for deletion: node gke-a-1 unreachable", "gke-a-1", 4},
		{"a pod on a node", "pod/fit-worker-3 node/ip-10-2-44-9 [INFO] step 1", "ip-10-2-44-9", 3},
		{"an address", "- (node_id=bb, ip=10.1.0.6, pid=511) world_rank=2, local_rank=0", "10.1.0.6", 2},
		{"another address", "- (node_id=bb, ip=10.1.0.6, pid=511) world_rank=2, local_rank=0", "10.1.0.7", 0},
		{"a table of torchrun", "  host      : n7\n  rank      : 12 (local_rank: 4)", "n7", 12},
		{"a rank of NCCL", "n4:10:11 [0] NCCL INFO comm 0x1 rank 16 nranks 32 cudaDev 0 - Init COMPLETE", "n4", 16},
	} {
		l := Log{Rank: -1, Text: strings.Split(c.text, "\n")}
		for _, t := range l.Text {
			l.Lines = append(l.Lines, job.Line{Rank: -1, Text: t})
		}
		if got := Count([]Log{l}).OfHost(c.host); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

// TestNumberedHosts checks that a host gets its rank from its number if no line names ranks.
func TestNumberedHosts(t *testing.T) {
	for _, c := range []struct {
		hosts string
		want  int
	}{{"node0 node1 node2", 1}, {"n11 n12 n13", 1}, {"n11 n12 n15", -1}, {"login n12", -1}} {
		var logs []Log
		for h := range strings.FieldsSeq(c.hosts) {
			logs = append(logs, Log{Rank: -1, Host: h, Lines: []job.Line{{Rank: -1, Text: "step 1"}}, Text: []string{"step 1"}})
		}
		if got := Count(logs).OfHost(logs[1].Host); got != c.want {
			t.Errorf("%s: got %d, want %d", c.hosts, got, c.want)
		}
	}
}
