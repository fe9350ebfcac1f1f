package lease

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// grant counts how often it was released.
type grant struct{ released int }

func (g *grant) Release() error { g.released++; return nil }

// scripted is a member whose Try returns the answers in turn. It repeats the last one.
type scripted struct {
	answers []any // *grant, *Waiting or error
	looks   []Request
	takes   []Request
	waits   int
}

func (m *scripted) Try(_ context.Context, r Request) (*grant, *Waiting, error) {
	if len(r.Take) == 0 {
		m.looks = append(m.looks, r)
		return nil, &Waiting{Spare: r.Devices}, nil
	}
	answer := m.answers[min(len(m.takes), len(m.answers)-1)]
	m.takes = append(m.takes, r)
	switch a := answer.(type) {
	case *grant:
		return a, nil, nil
	case *Waiting:
		return nil, a, nil
	case error:
		return nil, nil, a
	}
	panic("no answer")
}

func (m *scripted) Wait(ctx context.Context) error {
	m.waits++
	return ctx.Err()
}

// both returns a plan that wants all GPUs of every host. Host i has i+1 GPUs.
func both(n int) func([]*Waiting) ([]Request, time.Time, error) {
	return func(states []*Waiting) ([]Request, time.Time, error) {
		var requests []Request
		for i := range n {
			r := req("r", 1, gpus(i+1), i+1)
			if states != nil {
				r.Take = states[i].Spare
			}
			requests = append(requests, r)
		}
		return requests, time.Time{}, nil
	}
}

func TestAcquireKeepsAllOrNone(t *testing.T) {
	early, late, second := &grant{}, &grant{}, &grant{}
	a := &scripted{answers: []any{early, late}}
	b := &scripted{answers: []any{&Waiting{}, second}}
	grants, err := Acquire(t.Context(), []Member[*grant]{a, b}, both(2))
	if err != nil || !slices.Equal(grants, []*grant{late, second}) {
		t.Fatalf("got %v, %v", grants, err)
	}
	if early.released != 1 || late.released != 0 || second.released != 0 {
		t.Errorf("released %d, %d, %d", early.released, late.released, second.released)
	}
	if len(a.looks) != 2 || len(a.takes) != 2 || a.waits != 1 || b.waits != 1 {
		t.Errorf("%d looks, %d takes, %d and %d waits", len(a.looks), len(a.takes), a.waits, b.waits)
	}
}

// TestAcquireAsksAgainWhenPlanSays checks that Acquire asks again at the time that the plan returns. The host itself
// would report a change only after an hour.
func TestAcquireAsksAgainWhenPlanSays(t *testing.T) {
	s := open(t, directory(t), "")
	s.repoll = time.Hour
	turn := turnOf(t, s)
	asked := 0
	grants, err := Acquire(t.Context(), []Member[*Held]{turn}, func(states []*Waiting) ([]Request, time.Time, error) {
		r := req("r", 1, gpus(1), 1)
		if asked++; asked == 6 {
			r.Take = gpus(1)
		}
		return []Request{r}, time.Now().Add(time.Millisecond), nil
	})
	if err != nil || len(grants) != 1 {
		t.Fatalf("got %v, %v", grants, err)
	}
	if err := grants[0].Release(); err != nil {
		t.Error(err)
	}
}

func TestAcquireGivesBackOnErrors(t *testing.T) {
	broken := errors.New("host lost")
	for name, c := range map[string]struct {
		answer any
		plan   func([]*Waiting) ([]Request, time.Time, error)
		want   string
		given  int
	}{
		"a member fails": {answer: broken, plan: both(2), want: "host lost", given: 1},
		"the plan fails": {answer: broken, plan: func([]*Waiting) ([]Request, time.Time, error) {
			return nil, time.Time{}, errors.New("no plan")
		}, want: "no plan"},
		"too few requests": {answer: broken, plan: both(1), want: "1 requests for 2 hosts"},
	} {
		g := &grant{}
		grants, err := Acquire(t.Context(), []Member[*grant]{&scripted{answers: []any{g}}, &scripted{answers: []any{c.answer}}}, c.plan)
		if err == nil || !strings.Contains(err.Error(), c.want) || grants != nil || g.released != c.given {
			t.Errorf("%s: %v, %v, given back %d times", name, grants, err, g.released)
		}
	}
}

func TestAcquireSkipsHostsWithoutTake(t *testing.T) {
	g := &grant{}
	a, b := &scripted{answers: []any{g}}, &scripted{}
	grants, err := Acquire(t.Context(), []Member[*grant]{a, b}, func(states []*Waiting) ([]Request, time.Time, error) {
		r := []Request{req("r", 1, gpus(1), 1), req("r", 1, nil, 0)}
		if states != nil {
			r[0].Take = gpus(1)
		}
		return r, time.Time{}, nil
	})
	if err != nil || !slices.Equal(grants, []*grant{g, nil}) || g.released != 0 {
		t.Errorf("got %v, %v", grants, err)
	}
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	s := open(t, directory(t), "")
	s.repoll = time.Millisecond
	take(t, s, req("hog", 9, gpus(1), 1, "GPU0"))
	turn := turnOf(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := 0
	_, err := Acquire(ctx, []Member[*Held]{turn}, func(states []*Waiting) ([]Request, time.Time, error) {
		if asked++; asked == 4 {
			cancel()
		}
		return []Request{req("r", 1, gpus(1), 1)}, time.Time{}, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
