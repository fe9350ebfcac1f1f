package pmi1

import (
	"io"
	"math/rand/v2"
	"net"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestMapping(t *testing.T) {
	var scattered []int
	for i := range 400 {
		scattered = append(scattered, i*7%100)
	}
	for _, c := range []struct {
		nodes []int
		want  string
	}{
		{nil, ""},
		{[]int{0}, "(vector,(0,1,1))"},
		{[]int{0, 0, 0, 0}, "(vector,(0,1,4))"},
		{[]int{0, 0, 1, 1}, "(vector,(0,2,2))"},
		{[]int{0, 1, 0, 1}, "(vector,(0,2,1),(0,2,1))"},
		{[]int{0, 0, 0, 1, 2, 2}, "(vector,(0,1,3),(1,1,1),(2,1,2))"},
		{[]int{1, 0}, "(vector,(1,1,1),(0,1,1))"},
		{scattered, ""},
	} {
		if got := Mapping(c.nodes); got != c.want {
			t.Errorf("Mapping(%v) = %q, want %q", c.nodes, got, c.want)
		}
	}
}

func TestParseGroup(t *testing.T) {
	for _, c := range []struct {
		text string
		want group
		bad  bool
	}{
		{text: "", want: group{world: true}},
		{text: "WORLD", want: group{world: true}},
		{text: "WORLD:0", want: group{world: true, tagged: true}},
		{text: "WORLD:7", want: group{name: "WORLD:7", world: true, tag: 7, tagged: true}},
		{text: "NODE", want: group{name: "NODE", node: true}},
		{text: "3,1,3:2", want: group{name: "1,3:2", members: []int{1, 3}, tag: 2, tagged: true}},
		{text: "4", bad: true}, {text: "-1", bad: true}, {text: "1,", bad: true}, {text: "X", bad: true}, {text: "1:x", bad: true},
	} {
		got, err := parseGroup(c.text, 4)
		if (err != nil) != c.bad || !reflect.DeepEqual(got, c.want) {
			t.Errorf("parseGroup(%q) = %+v, %v; want %+v", c.text, got, err, c.want)
		}
	}
}

func TestHub(t *testing.T) {
	h := NewHub([][]int{{0, 1}, {2}, {}, {3}})
	for i, step := range []struct {
		host  int
		group string
		done  bool
	}{
		{0, "", false}, {2, "", false}, {1, "0,2", false}, {1, "", false}, {0, "0,2", true}, {3, "", true},
		{3, "0,2", false}, {0, "x", false}, {0, "9", false}, {0, "NODE", false}, {3, "3:1", true},
	} {
		if _, done := h.Enter(step.host, step.group, nil); done != step.done {
			t.Errorf("step %d, %+v: done is %v", i, step, done)
		}
	}
	h.Enter(0, "", []Pair{{"a", "1"}})
	h.Enter(3, "", []Pair{{"b", "2"}})
	if all, done := h.Enter(1, "", nil); !done || !reflect.DeepEqual(all, []Pair{{"a", "1"}, {"b", "2"}}) {
		t.Errorf("all is %v, %v", all, done)
	}
}

// TestHubAhead checks that a host may report later barriers before another host has reported the first one. The
// barriers must end in order, each with the pairs that were put before it.
func TestHubAhead(t *testing.T) {
	const barriers = 4
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		h := NewHub([][]int{{0}, {1}, {2}})
		var next [3]int
		ended := 0
		for range 3 * barriers {
			host := random.IntN(3)
			for next[host] == barriers {
				host = (host + 1) % 3
			}
			all, done := h.Enter(host, "", []Pair{{strconv.Itoa(host), strconv.Itoa(next[host])}})
			next[host]++
			if want := min(next[0], next[1], next[2]) > ended; done != want {
				t.Fatalf("seed %d: hosts have entered %v, %d have ended: done is %v", seed, next, ended, done)
			}
			if !done {
				continue
			}
			for _, p := range all {
				if len(all) != 3 || p.Value != strconv.Itoa(ended) {
					t.Fatalf("seed %d: barrier %d ends with %v", seed, ended, all)
				}
			}
			ended++
		}
		if ended != barriers || len(h.meetings) != 0 {
			t.Fatalf("seed %d: %d have ended, %d are kept", seed, ended, len(h.meetings))
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, line := range []string{initLine, "mcmd=spawn", "cmd=put kvsname=k key=a value=b\\ c", "cmd=x a b= =c", "\\", " cmd=a  b=1 "} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		var m message
		if m.parse([]byte(line)) != nil {
			return
		}
		if len(m.cmd) == 0 || m.n > maxFields {
			t.Errorf("%q: command %q and %d fields", line, m.cmd, m.n)
		}
		for _, field := range m.fields[:m.n] {
			if len(field.key) == 0 || !strings.Contains(line, string(field.key)) || !strings.Contains(line, string(field.value)) {
				t.Errorf("%q: field %q=%q", line, field.key, field.value)
			}
		}
		m.tail("message")
	})
}

func FuzzGroup(f *testing.F) {
	for _, text := range []string{"", "WORLD:1", "NODE", "0,2,1:5", "1,,2", ":", "99999999999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := parseGroup(text, 8)
		if err != nil {
			return
		}
		again, err := parseGroup(g.name, 8)
		if err != nil || again.name != g.name || again.world != g.world || !reflect.DeepEqual(again.members, g.members) {
			t.Errorf("%q is %+v, and its name %+v, %v", text, g, again, err)
		}
	})
}

// FuzzServe sends random data to a server with one of two ranks, and closes the connection.
func FuzzServe(f *testing.F) {
	for _, said := range []string{
		initLine + "\ncmd=put kvsname=k key=a value=b\ncmd=barrier_in\ncmd=finalize\n",
		initLine + "\ncmd=barrier_in group=0\ncmd=barrier_in group=0,1:4\n" + initLine + "\n",
		"mcmd=spawn\nx\nendcmd\ncmd=abort\n\n", "cmd=abort exitcode=99999999999999999999\n",
	} {
		f.Add([]byte(said))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		var s *Server
		s = NewServer(Config{Name: "k", Size: 2, Ranks: []int{0}, Enter: func(group string, puts []Pair) { s.Release(group, puts) }})
		theirs, ours := net.Pipe()
		deadline := time.Now().Add(limit)
		theirs.SetDeadline(deadline)
		read := make(chan struct{})
		go func() {
			defer close(read)
			io.Copy(io.Discard, theirs)
		}()
		served := make(chan struct{})
		go func() {
			defer close(served)
			s.Serve(0, ours)
		}()
		theirs.Write(said)
		theirs.Close()
		<-served
		<-read
		s.Close()
		if !time.Now().Before(deadline) {
			t.Error("it hung")
		}
		if s.State(0).Waiting || len(s.barriers) > maxIn {
			t.Errorf("%+v, %d barriers after the end", s.State(0), len(s.barriers))
		}
	})
}
