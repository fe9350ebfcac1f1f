package main

import (
	"strings"
	"testing"
	"time"
)

func TestRatioOf(t *testing.T) {
	pairs := func(from ...int) (s sample) {
		for _, ms := range from {
			s = append(s, time.Duration(ms)*time.Millisecond)
		}
		return s
	}
	for _, test := range []struct {
		name string
		a, b sample
		want string
	}{
		{"one pair", pairs(30), pairs(20), "1.50 (1.50 to 1.50)"},
		{"always twice, whatever the machine does", pairs(20, 40, 60, 80, 100), pairs(10, 20, 30, 40, 50), "2.00"},
		{"an outlier moves nothing", pairs(10, 10, 10, 10, 10, 10, 10, 10, 900), pairs(10, 10, 10, 10, 10, 10, 10, 10, 10), "1.00 (1.00 to 1.00)"},
	} {
		got := ratioOf(test.a, test.b)
		if !strings.HasPrefix(got.String(), test.want) {
			t.Errorf("%s: %v, want %s", test.name, got, test.want)
		}
		if got.low > got.of || got.of > got.high {
			t.Errorf("%s: %v: the ratio is not in its spread", test.name, got)
		}
		if again := ratioOf(test.a, test.b); again != got {
			t.Errorf("%s: %v, then %v of the same runs", test.name, got, again)
		}
	}
	if got := ratioOf(pairs(10, 20, 30), pairs(10, 10, 10)); got.low != 1 || got.high != 3 {
		t.Errorf("runs that differ: %v, want a spread of 1 to 3", got)
	}
}

// TestColdRatio checks that the ratio of the cold start compares the times of the cold start with those of the plain
// shell.
func TestColdRatio(t *testing.T) {
	ms := time.Millisecond
	job := sshJob{by: []contender{{"gangrun", nil, false}, {"gangrun, cold", nil, true}, {plainShell, nil, false}}}
	took := []sample{{ms, ms}, {30 * ms, 30 * ms}, {10 * ms, 10 * ms}}
	if r, ok := job.coldRatio(took); !ok || r.of != 3 || r.low != 3 || r.high != 3 {
		t.Errorf("%v, %t", r, ok)
	}
	if r, ok := job.coldRatio([]sample{{ms}, nil, {ms}}); ok {
		t.Errorf("without a cold start it is %v", r)
	}
	job.by = job.by[:2]
	if r, ok := job.coldRatio(took[:2]); ok {
		t.Errorf("without a plain shell it is %v", r)
	}
}
