package curve

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestCounter(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []int64
		restarts   bool
	}{
		{"steps of the whole run", "step 10\nstep 20\nstep 30\n", []int64{10, 20, 30}, false},
		{"steps of the whole run, with epochs", "epoch 1 step 10 loss 1\nepoch 2 step 20 loss 1\n", []int64{10, 20}, false},
		{"steps of each epoch", "Epoch: [0][2/5] loss 1\nEpoch: [0][4/5] loss 1\nEpoch: [1][1/5] loss 1\nEpoch: [2][3/5] loss 1\n", []int64{2, 4, 6, 13}, true},
		{"the first epoch is 1", "Epoch [1/3], Step [4/5], Loss: 1\nEpoch [2/3], Step [1/5], Loss: 1\nEpoch [3/3], Step [5/5], Loss: 1\n", []int64{4, 6, 15}, true},
		{"no total", "epoch 0 iter 2\nepoch 0 iter 7\nepoch 1 iter 1\nepoch 2 iter 5\n", []int64{2, 7, 8, 13}, true},
		{"the epoch in a line of its own", "Epoch 1/2\n2/5 [==>...] - loss: 1\n5/5 [=====] - loss: 1\nEpoch 2/2\n1/5 [>....] - loss: 1\n", []int64{1, 2, 5, 5, 6}, true},
		{"the epoch in a line of its own, a late step", "Epoch 1/2\n5/5 [=====] - loss: 1\nEpoch 2/2\n3/5 [>....] - loss: 1\n", []int64{1, 5, 5, 8}, true},
		{"only epochs", "Epoch 1/3\nEpoch 2/3\nEpoch 3/3\n", []int64{1, 2, 3}, false},
		{"resumed in epoch 5", "Epoch: [5][2/5] loss 1\nEpoch: [6][1/5] loss 1\n", []int64{2, 26}, true},
		{"a bar of its own inside", " 10%|# | 10/100 [00:01<00:02, 1it/s]\n 50%|# | 1/2 [00:01<00:02, 1it/s]\n 11%|# | 11/100 [00:01<00:02, 1it/s]\n", []int64{10, 10, 11}, false},
		{"a bar of its own outside", " 50%|# | 1/2 [00:01<00:02, 1it/s]\n 10%|# | 10/100 [00:01<00:02, 1it/s]\n100%|# | 2/2 [00:01<00:02, 1it/s]\n 20%|# | 20/100 [00:01<00:02, 1it/s]\n", []int64{1, 10, 10, 20}, false},
		{"lines of two threads", "step 10\nstep 9\nstep 11\n", []int64{10, 10, 11}, false},
		{"a run after a run", "step 99\nstep 1\nstep 2\n", []int64{99, 100, 101}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r Reader
			var n Counter
			var got []int64
			var last job.Progress
			for line := range strings.Lines(c.text) {
				if p, ok := r.Line([]byte(line)); ok {
					last = n.Add(p)
					got = append(got, last.Count)
				}
			}
			if !reflect.DeepEqual(got, c.want) || last.Restarts != c.restarts {
				t.Errorf("counts %v, restarts %v; want %v, %v", got, last.Restarts, c.want, c.restarts)
			}
		})
	}
}

// FuzzCounter: the count never decreases, whatever is reported.
func FuzzCounter(f *testing.F) {
	f.Add([]byte{1, 2, 3, 0, 9, 200, 1, 0, 0, 0, 1, 7})
	f.Fuzz(func(t *testing.T, text []byte) {
		var n Counter
		count := int64(0)
		for ; len(text) >= 4; text = text[4:] {
			p := job.Progress{Step: int64(text[0]), Total: int64(text[1]), Epoch: int64(text[2]) - 1, ByEpoch: text[3]%4 == 0}
			got := n.Add(p)
			if got.Count < count {
				t.Fatalf("the count went from %d to %d", count, got.Count)
			}
			count = got.Count
		}
	})
}

func TestPattern(t *testing.T) {
	for _, c := range []struct{ pattern, line, want string }{
		{`sweep (?P<step>\d+) of (?P<total>\d+)`, "sweep 12 of 500", "12/500 - -"},
		{`^E(?P<epoch>\d+) S(?P<step>\d+) l=(?P<loss>\S+)`, "E3 S70 l=0.25", "70/- 3 0.25"},
		{`E(?P<epoch>\d+)`, "E3", "3/- 3 -"},
		{`done (?P<step>[\d,]+)`, "done 1,234", "1234/- - -"},
		{`(?P<step>\d+) (?P<loss>\S+)`, "7 nan", "7/- - nan"},
		{`(?P<step>\d+) (?P<loss>\S+)`, "7 -2,2932", "7/- - -2.2932"},
		{`(?P<step>\d+) (?P<loss>\S+)`, "7 2,293", "7/- - -"}, // 2.293 or 2293
		{`(?P<step>\d+) (?P<loss>\S+)`, "7 high", "7/- - -"},
		{`t=(?P<step>[\d.e+]+)`, "\x1b[32mt=1.5e3\x1b[0m", "1500/- - -"},
		{`(?P<step>-?\d+)`, "-3", ""},
		{`(?P<step>x+)`, "xx", ""},
		{`s (?P<step>\d+)`, "step 7", ""},
		{`s(?P<step>\d+)(?: of (?P<total>\d+))?`, "s7", "7/- - -"},
	} {
		p, err := NewPattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		found, ok := p.Line([]byte(c.line))
		got := ""
		if ok {
			got = want(found)
		}
		if got != c.want {
			t.Errorf("%s on %q: got %q, want %q", c.pattern, c.line, got, c.want)
		}
	}
	for pattern, want := range map[string]string{
		``:                                    `progress pattern "" has no group named step or epoch`,
		`step \d+`:                            `has no group named step or epoch`,
		`(?P<step>\d+`:                        "progress pattern \"(?P<step>\\\\d+\" is no regular expression: error parsing regexp: missing closing )",
		`(?P<setp>\d+)`:                       `has a group named "setp", but a group may only be named step, total, epoch, loss`,
		`(?P<step>\d+)(?=x)`:                  `is no regular expression`,
		strings.Repeat("x", 5000):             "has 5000 bytes, but may have 4096",
		`(?P<loss>\d+)(?P<total>\d+)`:         `has no group named step or epoch`,
		fmt.Sprintf(`(?P<step>a){%d}`, 10000): `is no regular expression`,
	} {
		if _, err := NewPattern(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: got %v, want %q", pattern, err, want)
		}
	}
}

// TestReaderPattern: if there is a pattern, only lines that match it are progress.
func TestReaderPattern(t *testing.T) {
	p, err := NewPattern(`sweep (?P<step>\d+)`)
	if err != nil {
		t.Fatal(err)
	}
	r := Reader{Pattern: p}
	var found []string
	for _, line := range []string{"step 3 loss 1", "sweep 4", "Step Temp", "1 2", "sweep 5"} {
		if p, ok := r.Line([]byte(line)); ok {
			found = append(found, want(p))
		}
	}
	if want := []string{"4/- - -", "5/- - -"}; !reflect.DeepEqual(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}
