package nvml

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// said is an error with the text of a driver.
type said struct {
	text string
	is   error
}

func (s said) Error() string { return s.text }
func (s said) Unwrap() error { return s.is }

var (
	lost         = said{"GPU is lost", ErrLost}
	notSupported = said{"Not Supported", ErrNotSupported}
	unknownError = said{"Unknown Error", nil}
)

// fakeLibrary is a host with GPUs.
type fakeLibrary struct {
	init    error
	answers map[Query]any // Answer or error
	gpus    []any         // *fakeGPU or error
	sets    []*fakeSet    // the sets that Events returns, one after the other
	given   int
}

func (l *fakeLibrary) Init() error                 { return l.init }
func (l *fakeLibrary) Ask(q Query) (Answer, error) { return answer(l.answers[q]) }
func (l *fakeLibrary) GPU(index int) (GPU, error) {
	switch g := l.gpus[index].(type) {
	case *fakeGPU:
		return g, nil
	case error:
		return nil, g
	}
	panic("neither a GPU nor an error")
}

func (l *fakeLibrary) Events() (EventSet, error) {
	if l.given == len(l.sets) {
		return nil, errors.New("no more event sets")
	}
	l.given++
	return l.sets[l.given-1], nil
}

// answer returns the answer that a test has set for a query. Without an answer, the query is not supported.
func answer(a any) (Answer, error) {
	switch a := a.(type) {
	case Answer:
		return a, nil
	case error:
		return Answer{}, a
	}
	return Answer{}, notSupported
}

// fakeGPU is a GPU or a MIG device.
type fakeGPU struct {
	broken    error // the error of every call; nil if the calls work
	answers   map[Query]any
	links     map[int]any // the active NVLinks: the PeerKind as uint64, the bus ID of a GPU, an error, or both of otherEnd
	processes map[Query]any
	instances []any // *fakeGPU or error
	ancestors map[GPU]any
	asked     int
}

type otherEnd struct{ kind, peer any }

func (g *fakeGPU) Ask(q Query, n int) (Answer, error) {
	g.asked++
	if g.broken != nil {
		return Answer{}, g.broken
	}
	switch q {
	case QueryLink, QueryPeerKind, QueryPeer:
		return g.link(q, n)
	}
	return answer(g.answers[q])
}

func (g *fakeGPU) link(q Query, n int) (Answer, error) {
	at, active := g.links[n]
	if q == QueryLink {
		if err, bad := at.(error); bad {
			return Answer{}, err
		}
		if !active {
			return num(0), nil
		}
		return num(1), nil
	}
	end, ok := at.(otherEnd)
	switch at := at.(type) {
	case uint64:
		end = otherEnd{num(at), Answer{Text: "00000000:FF:00.0"}}
	case string:
		end = otherEnd{num(PeerGPU), Answer{Text: at}}
	default:
		if !ok {
			panic(fmt.Sprintf("no such link: %v", at))
		}
	}
	if q == QueryPeerKind {
		return answer(end.kind)
	}
	return answer(end.peer)
}

func (g *fakeGPU) Processes(q Query) ([]Process, error) {
	g.asked++
	if g.broken != nil {
		return nil, g.broken
	}
	switch p := g.processes[q].(type) {
	case []Process:
		return p, nil
	case error:
		return nil, p
	}
	return nil, nil
}

func (g *fakeGPU) Instance(index int) (GPU, error) {
	if g.broken != nil {
		return nil, g.broken
	}
	switch i := g.instances[index].(type) {
	case *fakeGPU:
		return i, nil
	case error:
		return nil, i
	}
	return nil, said{"Not Found", ErrNotFound}
}

func (g *fakeGPU) Ancestor(other GPU) (job.Link, error) {
	if g.broken != nil {
		return "", g.broken
	}
	if o := other.(*fakeGPU); o.broken != nil {
		return "", o.broken
	}
	switch a := g.ancestors[other].(type) {
	case job.Link:
		return a, nil
	case error:
		return "", a
	}
	return job.LinkSYS, nil
}

func num(n ...uint64) Answer {
	var a Answer
	copy(a.Numbers[:], n)
	return a
}

// healthy returns an H100 of a host with 8 of them and NVSwitch.
func healthy(index int) *fakeGPU {
	g := &fakeGPU{
		answers: map[Query]any{
			QueryUUID: Answer{Text: fmt.Sprintf("GPU-%d", index)}, QueryName: Answer{Text: "NVIDIA H100 80GB HBM3"},
			QueryPCI:  Answer{Text: fmt.Sprintf("00000000:%X0:00.0", index+1)},
			QueryCPUs: Answer{Mask: []uint64{0xffff0000ffff, 1}}, QueryNUMA: Answer{Mask: []uint64{1 << (index / 4)}},
			QueryMemory: num(80*gib, 100*mib, 79*gib), QueryComputeMode: num(0), QueryUtilisation: num(93, 41),
			QueryECCMode: num(1), QueryECC: num(5, 0, 7, 0), QuerySRAM: num(0),
			QueryRemapped: num(2, 0, 1, 0), QueryThrottle: num(1 | 1<<2), QueryRecovery: num(0), QueryMIG: num(0),
		},
		links:     map[int]any{},
		processes: map[Query]any{QueryMPS: notSupported},
	}
	for n := range 18 {
		g.links[n] = PeerSwitch
	}
	return g
}

// fakeHost returns a host of n healthy GPUs, which change has changed.
func fakeHost(n int, change func(i int, g *fakeGPU)) *fakeLibrary {
	l := &fakeLibrary{answers: map[Query]any{QueryDriver: Answer{Text: "550.54.15"}, QueryCUDA: num(12040), QueryCount: num(uint64(n))}}
	for i := range n {
		g := healthy(i)
		if change != nil {
			change(i, g)
		}
		l.gpus = append(l.gpus, g)
	}
	return l
}

func nobody(int) (string, string) { return "", "" }

// fakeSet is an event set that returns what a test has set.
type fakeSet struct {
	added  []GPU
	refuse map[GPU]error
	tells  []any // Occurrence, error, or func() that is called
	freed  int
	free   error
}

func (s *fakeSet) Add(g GPU) error {
	if err := s.refuse[g]; err != nil {
		return err
	}
	s.added = append(s.added, g)
	return nil
}

func (s *fakeSet) Wait(limit time.Duration) (Occurrence, error) {
	for len(s.tells) > 0 {
		next := s.tells[0]
		s.tells = s.tells[1:]
		switch next := next.(type) {
		case Occurrence:
			return next, nil
		case error:
			return Occurrence{}, next
		case context.CancelFunc:
			next()
		case func():
			next()
		}
	}
	return Occurrence{}, said{"Timeout", ErrTimeout}
}

func (s *fakeSet) Free() error {
	s.freed++
	return s.free
}
