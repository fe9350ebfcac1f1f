package flightrecord

import (
	"bytes"
	"errors"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// dumps runs code in Python. The code fills the dict "ranks" with dumps as PyTorch makes them.
func dumps(t *testing.T, code string) (all []job.FlightRecord) {
	t.Helper()
	const before = `
import pickle, sys
WORLD = {"0": {"name": "0", "desc": "default_pg", "ranks": str([0, 1, 2, 3])}}
def call(seq, op="all_reduce", state="completed", group=("0", "default_pg"), sizes=((4, 2),), out=None, p2p=False, dtype="Float"):
    return {"frames": [{"name": "all_reduce", "filename": "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", "line": 2806}, {"name": "average", "filename": "/home/u/train.py", "line": 120}, {"name": "<module>", "filename": "/home/u/train.py", "line": 140}],
        "record_id": seq, "pg_id": 0, "process_group": group, "collective_seq_id": seq, "p2p_seq_id": 0, "op_id": seq,
        "profiling_name": "nccl:" + op, "time_created_ns": 1726000000000000000, "duration_ms": 0.5, "input_sizes": [list(s) for s in sizes],
        "input_dtypes": [dtype for _ in sizes], "output_sizes": [list(s) for s in out or sizes], "output_dtypes": [dtype for _ in out or sizes],
        "state": state, "time_discovered_started_ns": None, "time_discovered_completed_ns": None, "retired": state == "completed", "timeout_ms": 600000, "is_p2p": p2p}
def dump(*calls, groups=WORLD, status=(7, -1, 6)):
    return {"version": "2.10", "pg_config": groups, "entries": list(calls), "nccl_version": "2.21.5", "nccl_comm_state": {},
        "pg_status": {g: dict(zip(("last_enqueued_collective", "last_started_collective", "last_completed_collective"), status)) for g in groups}}
`
	const after = `
for rank, data in ranks.items():
    data = pickle.dumps(data, protocol=2)
    sys.stdout.buffer.write(b"%d %d\n" % (rank, len(data)) + data)
`
	cmd := exec.Command("/usr/bin/python3", "-c", before+strings.TrimSpace(code)+after)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	for len(out) > 0 {
		head, rest, _ := bytes.Cut(out, []byte("\n"))
		rank, size := 0, 0
		for i, field := range strings.Fields(string(head)) {
			n := 0
			for _, digit := range field {
				n = 10*n + int(digit-'0')
			}
			*[]*int{&rank, &size}[i] = n
		}
		d, err := Parse(rank, bytes.NewReader(rest[:size]))
		if err != nil {
			t.Fatal(err)
		}
		all, out = append(all, d), rest[size:]
	}
	return all
}

func TestParse(t *testing.T) {
	got := dumps(t, `ranks = {3: dump(call(6), call(7, state="scheduled"))}`)
	done := job.CollectiveCall{Group: "0", Seq: 6, Op: "nccl:all_reduce", State: "completed", Retired: true, In: "[4 2] Float", Out: "[4 2] Float", InSize: 8, OutSize: 8, Where: "train.py:120 average"}
	open := done
	open.Seq, open.State, open.Retired = 7, "scheduled", false
	want := []job.FlightRecord{{Rank: 3, Version: "2.10", Calls: []job.CollectiveCall{done, open}, Groups: map[string]job.ProcessGroup{
		"0": {Desc: "default_pg", Ranks: []int{0, 1, 2, 3}, LastEnqueued: 7, LastStarted: -1, LastCompleted: 6}}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	for _, data := range []string{"", "not a pickle", "\x80\x02}.", "\x80\x02]."} {
		if _, err := Parse(0, strings.NewReader(data)); err == nil {
			t.Errorf("%q: no error", data)
		}
	}
	if _, err := Parse(0, strings.NewReader("\x80\x02}.")); !errors.Is(err, ErrFormat) {
		t.Errorf("got %v of an empty dict", err)
	}
}

func TestAnalyse(t *testing.T) {
	const at = "train.py:120 average"
	for _, c := range []struct {
		name, code string
		want       []job.CollectiveProblem
		blamed     []int
	}{
		{"healthy", `ranks = {r: dump(call(6), call(7)) for r in range(4)}`, nil, nil},
		{"all wait: no rank stands out", `ranks = {r: dump(call(6), call(7, state="started")) for r in range(4)}`, nil, nil},
		{"a rank is missing", `ranks = {r: dump(call(6), call(7, state="scheduled")) for r in (0, 1, 3)}; ranks[2] = dump(call(6))`,
			[]job.CollectiveProblem{{Group: "0", Desc: "default_pg", Seq: 7, Op: "nccl:all_reduce", Where: at, Missing: []int{2}, Waiting: []int{0, 1, 3}}}, []int{2}},
		{"a rank never called anything", `ranks = {r: dump(call(1, state="scheduled")) for r in (0, 1, 3)}; ranks[2] = dump()`,
			[]job.CollectiveProblem{{Group: "0", Desc: "default_pg", Seq: 1, Op: "nccl:all_reduce", Where: at, Missing: []int{2}, Waiting: []int{0, 1, 3}}}, []int{2}},
		{"a rank has no dump", `ranks = {r: dump(call(7, state="scheduled")) for r in (0, 1, 3)}`,
			[]job.CollectiveProblem{{Group: "0", Desc: "default_pg", Seq: 7, Op: "nccl:all_reduce", Where: at, Silent: []int{2}, Waiting: []int{0, 1, 3}}}, nil},
		{"the ring has lost the older calls", `ranks = {r: dump(*(call(s) for s in range(r, 8)), call(8, state="scheduled")) for r in range(3)}; ranks[3] = dump(*(call(s) for s in range(5, 8)))`,
			[]job.CollectiveProblem{{Group: "0", Desc: "default_pg", Seq: 8, Op: "nccl:all_reduce", Where: at, Missing: []int{3}, Waiting: []int{0, 1, 2}}}, []int{3}},
		{"another collective, by the first rank", `ranks = {r: dump(call(7, state="scheduled")) for r in (1, 2, 3)}; ranks[0] = dump(call(7, op="broadcast", state="scheduled"))`,
			[]job.CollectiveProblem{{Group: "0", Desc: "default_pg", Seq: 7, Op: "nccl:all_reduce", Where: at, Differing: []int{0}, Waiting: []int{0, 1, 2, 3}}}, []int{0}},
		{"another size", `ranks = {r: dump(call(7, state="started", sizes=((4, 3 if r == 1 else 2),))) for r in range(4)}`,
			[]job.CollectiveProblem{{Group: "0", Desc: "default_pg", Seq: 7, Op: "nccl:all_reduce", Where: at, Differing: []int{1}, Waiting: []int{0, 1, 2, 3}}}, []int{1}},
		{"another type", `ranks = {r: dump(call(7, state="started", dtype="Half" if r == 1 else "Float")) for r in range(4)}`,
			[]job.CollectiveProblem{{Group: "0", Desc: "default_pg", Seq: 7, Op: "nccl:all_reduce", Where: at, Differing: []int{1}, Waiting: []int{0, 1, 2, 3}}}, []int{1}},
		{"all-to-all with other sizes is right", `ranks = {r: dump(call(7, op="all_to_all", state="started", sizes=((r + 1,),), out=((4 - r,),))) for r in range(4)}`, nil, nil},
		{"all-to-all that loses numbers", `ranks = {r: dump(call(7, op="all_to_all", state="started", sizes=((2,),), out=((1,),))) for r in range(4)}`,
			[]job.CollectiveProblem{{Group: "0", Desc: "default_pg", Seq: 7, Op: "nccl:all_to_all", Where: at, Waiting: []int{0, 1, 2, 3}}}, nil},
		{"point to point has no part in it", `ranks = {r: dump(call(7)) for r in range(4)}; ranks[0]["entries"].append(call(8, op="send", state="scheduled", p2p=True))`, nil, nil},
		// Rank 1 waits for rank 3 in the group of both. In the group of all ranks, the others wait for both.
		{"a chain of groups", `
groups = {**WORLD, "1": {"name": "1", "desc": "tp", "ranks": "[1, 3]"}}
ranks = {r: dump(call(7, state="scheduled"), groups=groups) for r in (0, 2)}
ranks[1] = dump(call(6), call(2, group=("1", "tp"), state="started"), groups=groups)
ranks[3] = dump(call(6), call(1, group=("1", "tp")), groups=groups)`,
			[]job.CollectiveProblem{
				{Group: "0", Desc: "default_pg", Seq: 7, Op: "nccl:all_reduce", Where: at, Missing: []int{1, 3}, Waiting: []int{0, 2}},
				{Group: "1", Desc: "tp", Seq: 2, Op: "nccl:all_reduce", Where: at, Missing: []int{3}, Waiting: []int{1}},
			}, []int{3}},
		{"a circle of groups", `
groups = {"1": {"desc": "a", "ranks": "[0, 1]"}, "2": {"desc": "b", "ranks": "[0, 1]"}}
ranks = {0: dump(call(1, group=("1", "a"), state="started"), groups=groups), 1: dump(call(1, group=("2", "b"), state="started"), groups=groups)}`,
			[]job.CollectiveProblem{
				{Group: "1", Desc: "a", Seq: 1, Op: "nccl:all_reduce", Where: at, Missing: []int{1}, Waiting: []int{0}},
				{Group: "2", Desc: "b", Seq: 1, Op: "nccl:all_reduce", Where: at, Missing: []int{0}, Waiting: []int{1}},
			}, []int{0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			problems, blamed := Analyse(dumps(t, c.code))
			if !reflect.DeepEqual(problems, c.want) || len(blamed) != len(c.blamed) || len(blamed) > 0 && !reflect.DeepEqual(blamed, c.blamed) {
				t.Errorf("got %+v, %v\nwant %+v, %v", problems, blamed, c.want, c.blamed)
			}
		})
	}
}
