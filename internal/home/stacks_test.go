package home

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

func TestStacksRequests(t *testing.T) {
	run := requestable(t)
	me, other := Self(), Self()
	other.Start++
	ask := func(to job.Controller) AskedStacks {
		t.Helper()
		a, err := run.AskStacks(StacksRequest{To: to, By: Self(), At: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	mine, stale := ask(me), ask(other)
	if got, err := mine.Answer(); got != nil || err != nil {
		t.Errorf("an answer before anybody has looked: %+v, %v", got, err)
	}
	ids, err := run.TakeStacks(me)
	if err != nil || len(ids) != 1 {
		t.Fatalf("took %v, %v", ids, err)
	}
	want := Stacks{Run: run.ID, Attempt: 2, Stacks: []job.RankStack{{Rank: 3, Host: "h\xff1", Threads: []job.ThreadStack{{PID: 9, Name: "caf\xe9"}}}}}
	if err := run.AnswerStacks(ids[0], want); err != nil {
		t.Fatal(err)
	}
	got, err := mine.Answer()
	if err != nil || got == nil || got.Attempt != 2 || got.Stacks[0].Host != "h\xff1" || got.Stacks[0].Threads[0].Name != "caf\xe9" {
		t.Errorf("the answer is %+v, %v", got, err)
	}
	if got, _ := stale.Answer(); got != nil {
		t.Errorf("the other got %+v", got)
	}
	if again, err := run.TakeStacks(me); err != nil || len(again) != 0 {
		t.Errorf("took %v again, %v", again, err)
	}
	if stops, err := run.TakeStops(me); err != nil || len(stops) != 0 {
		t.Errorf("it counts as a request to stop: %v, %v", stops, err)
	}
	if err := errors.Join(mine.Withdraw(), stale.Withdraw(), mine.Withdraw()); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(run.Dir, stacksPrefix+"*")); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
	if err := run.AnswerStacks(ids[0], want); err != nil {
		t.Fatal(err)
	}
	run.ForgetStacks(ids[0])
	if got, err := mine.Answer(); got != nil || err != nil {
		t.Errorf("a forgotten answer: %+v, %v", got, err)
	}
}

func TestVitalsFile(t *testing.T) {
	run := requestable(t)
	if text, err := run.ReadVitals(); text != nil || err != nil {
		t.Errorf("before it is written: %q, %v", text, err)
	}
	for _, content := range []string{"one, and longer", "two"} {
		if err := run.WriteVitals([]byte(content)); err != nil {
			t.Fatal(err)
		}
		if text, err := run.ReadVitals(); string(text) != content || err != nil {
			t.Errorf("read %q, %v", text, err)
		}
	}
	info, err := os.Stat(filepath.Join(run.Dir, vitalsName))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("it has mode %v, %v", info.Mode(), err)
	}
	if err := errors.Join(run.RemoveVitals(), run.RemoveVitals()); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(run.Dir, ".*")); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
	if err := os.RemoveAll(run.Dir); err != nil {
		t.Fatal(err)
	}
	if err := run.WriteVitals(nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a run that is gone: %v", err)
	}
}
