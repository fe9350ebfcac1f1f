package topology

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gangrun/gangrun/internal/job"
)

func TestPlace(t *testing.T) {
	two := job.Inventory{Hosts: []job.Host{{Name: "h1", Slots: 2}, {Name: "h2", Slots: 2}}}
	tests := []struct {
		name      string
		ranks     int
		inventory job.Inventory
		not       job.Excluded
		want      []string // host of each rank; nil means no placement
	}{
		{"one each", 2, two, job.Excluded{}, []string{"h1", "h2"}},
		{"blocks", 4, two, job.Excluded{}, []string{"h1", "h1", "h2", "h2"}},
		{"soft slots give", 5, two, job.Excluded{}, []string{"h1", "h1", "h1", "h2", "h2"}},
		{"fewer than hosts", 1, two, job.Excluded{}, []string{"h1"}},
		{"excluded", 2, two, job.Excluded{Hosts: []string{"h1"}}, []string{"h2", "h2"}},
		{"all excluded", 1, two, job.Excluded{Hosts: []string{"h1", "h2"}}, nil},
		{"no hosts", 1, job.Inventory{}, job.Excluded{}, nil},
		{"hard slots hold", 3, job.Inventory{Hosts: []job.Host{{Name: "h1", Slots: 1, Hard: true}, {Name: "h2", Slots: 4, Hard: true}}}, job.Excluded{}, []string{"h1", "h2", "h2"}},
		{"a host with few cores", 6, job.Inventory{Hosts: []job.Host{{Name: "h1", Slots: 1}, {Name: "h2", Slots: 64}}}, job.Excluded{}, []string{"h1", "h2", "h2", "h2", "h2", "h2"}},
		{"more ranks than cores", 5, job.Inventory{Hosts: []job.Host{{Name: "h1", Slots: 1}, {Name: "h2", Slots: 2}}}, job.Excluded{}, []string{"h1", "h1", "h2", "h2", "h2"}},
		{"free hard slots first", 4, job.Inventory{Hosts: []job.Host{{Name: "h1", Slots: 4, Hard: true}, {Name: "h2", Slots: 1}}}, job.Excluded{}, []string{"h1", "h1", "h1", "h2"}},
		{"all hard slots in use", 7, job.Inventory{Hosts: []job.Host{{Name: "h1", Slots: 4, Hard: true}, {Name: "h2", Slots: 1}}}, job.Excluded{}, []string{"h1", "h1", "h1", "h1", "h2", "h2", "h2"}},
		{"hard slots spent", 3, job.Inventory{Hosts: []job.Host{{Name: "h1", Slots: 2, Hard: true}}}, job.Excluded{}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, why, err := Place(job.Spec{Ranks: test.ranks}, test.inventory, test.not)
			if test.want == nil {
				var none *NoPlacement
				if !errors.As(err, &none) || none.Hint == "" {
					t.Fatalf("got %v, %v; want no placement, with a hint", p, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range p.Ranks {
				got = append(got, r.Host)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("ranks on %v, want %v", got, test.want)
			}
			if len(why.Why) == 0 {
				t.Error("no explanation")
			}
		})
	}
}

// TestPlaceWords checks the singular and plural words.
func TestPlaceWords(t *testing.T) {
	one := job.Inventory{Hosts: []job.Host{{Name: "h1", Slots: 1, Hard: true}}}
	for ranks, want := range map[int]string{1: "host h1 takes 1 of 1 rank on 1 core", 2: "2 ranks do not fit: 1 slot on 1 host", 3: "3 ranks do not fit: 1 slot on 1 host"} {
		_, why, err := Place(job.Spec{Ranks: ranks}, one, job.Excluded{})
		got := strings.Join(why.Why, "; ")
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%d ranks: %q, want %q", ranks, got, want)
		}
	}
	_, _, err := Place(job.Spec{Ranks: 1}, job.Inventory{}, job.Excluded{})
	if want := "1 rank does not fit: 0 slots on 0 hosts"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestPlaceProperties checks what must be true of every placement.
func TestPlaceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var inventory job.Inventory
		capacity, soft := 0, false
		for i := range rapid.IntRange(0, 6).Draw(t, "hosts") {
			h := job.Host{Name: string(rune('a' + i)), Slots: rapid.IntRange(0, 4).Draw(t, "slots"), Hard: rapid.Bool().Draw(t, "hard")}
			inventory.Hosts = append(inventory.Hosts, h)
			capacity += h.Slots
			soft = soft || !h.Hard && h.Slots > 0
		}
		ranks := rapid.IntRange(1, 20).Draw(t, "ranks")
		p, _, err := Place(job.Spec{Ranks: ranks}, inventory, job.Excluded{})
		if fits := soft || ranks <= capacity; fits != (err == nil) {
			t.Fatalf("fits is %v, but the error is %v", fits, err)
		}
		if err != nil {
			return
		}
		if len(p.Ranks) != ranks {
			t.Fatalf("%d ranks placed, want %d", len(p.Ranks), ranks)
		}
		for i, r := range p.Ranks {
			if r.Rank != i || p.Hosts[r.Node].Name != r.Host || r.LocalSize != len(p.On(r.Host)) || p.On(r.Host)[r.LocalRank].Rank != i {
				t.Fatalf("rank %d is numbered wrong: %+v", i, r)
			}
			if i > 0 && p.Ranks[i-1].Node > r.Node {
				t.Fatalf("rank %d goes back to host %s", i, r.Host)
			}
		}
		for _, h := range p.Hosts {
			if h.Hard && len(p.On(h.Name)) > h.Slots {
				t.Fatalf("host %s has %d hard slots and %d ranks", h.Name, h.Slots, len(p.On(h.Name)))
			}
		}
	})
}
