package flightrecord

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestBrief checks that Analyse finds the same problem in a brief record, even if one rank is far behind, and
// that the record is small.
func TestBrief(t *testing.T) {
	var records []job.FlightRecord
	for rank := range 3 {
		r := job.FlightRecord{Rank: rank, Groups: map[string]job.ProcessGroup{}}
		for _, group := range []string{"0", "1"} {
			r.Groups[group] = job.ProcessGroup{Ranks: []int{0, 1, 2}}
		}
		for seq := int64(1); seq <= 1000; seq++ {
			for _, group := range []string{"0", "1"} {
				c := job.CollectiveCall{Group: group, Seq: seq, Op: "nccl:all_reduce", State: "completed"}
				if group == "1" && seq > 900 {
					if c.State = "scheduled"; rank == 1 {
						continue
					}
				}
				r.Calls = append(r.Calls, c)
			}
			r.Calls = append(r.Calls, job.CollectiveCall{Group: "0", Seq: seq, Op: "nccl:send", State: "scheduled", PeerToPeer: true})
		}
		records = append(records, r)
	}
	want, whom := Analyse(records)
	for i := range records {
		if records[i] = Brief(records[i]); len(records[i].Calls) > 2*(keptNewest+keptOpen) {
			t.Errorf("%d calls are kept of rank %d", len(records[i].Calls), i)
		}
	}
	got, blamed := Analyse(records)
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(blamed, whom) || len(got) != 1 || got[0].Seq != 901 || !reflect.DeepEqual(blamed, []int{1}) {
		t.Errorf("got %+v, %v, want %+v, %v", got, blamed, want, whom)
	}
}

// TestShort checks that texts about many tensors are short, and that different texts stay different.
func TestShort(t *testing.T) {
	long := func(last int) string {
		return strings.Repeat("[1024 1024] Float ", 500) + fmt.Sprintf("[%d] Float", last)
	}
	a, b := short(long(1)), short(long(2))
	if a == b || a != short(long(1)) || len(a) > maxTensors+25 {
		t.Errorf("got %q and %q", a, b)
	}
}

func TestWords(t *testing.T) {
	for want, p := range map[string]job.CollectiveProblem{
		"nccl:all_reduce 7 of dp (train.py:120 average): ranks 2,5-6 have not called it and ranks 0-1 wait":                 {Desc: "dp", Seq: 7, Op: "nccl:all_reduce", Where: "train.py:120 average", Missing: []int{2, 5, 6}, Waiting: []int{0, 1}},
		"nccl:all_reduce 7 of process group 3: rank 1 has called another operation or given other tensors and rank 0 waits": {Group: "3", Seq: 7, Op: "nccl:all_reduce", Differing: []int{1}, Waiting: []int{0, 1}},
		"nccl:broadcast 1 of dp: ranks 0-1 wait and rank 2 has left no record":                                              {Desc: "dp", Seq: 1, Op: "nccl:broadcast", Waiting: []int{0, 1}, Silent: []int{2}},
	} {
		if got := Words(p); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestLine(t *testing.T) {
	r := job.FlightRecord{Rank: 3, Groups: map[string]job.ProcessGroup{"0": {Desc: "dp"}}}
	if got := Line(r, "node1", "/logs/d_3"); got.Text != "it has called no collective yet" || got.Rank != 3 || got.Host != "node1" || got.File != "/logs/d_3" || !reflect.DeepEqual(*got.Record, r) {
		t.Errorf("got %+v", got)
	}
	r.Calls = []job.CollectiveCall{{Group: "0", Seq: 6, Op: "nccl:all_reduce", State: "started", Where: "train.py:120 average"}}
	if got, want := Line(r, "", "").Text, "its newest call is nccl:all_reduce 6 of dp, which is started, from train.py:120 average"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
