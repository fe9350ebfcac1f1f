package pmi1

import (
	"slices"
	"testing"
)

// TestParted checks which ranks Releasable returns.
func TestParted(t *testing.T) {
	link := func(local, remote string) Link { return Link{Local: local, Remote: remote} }
	asks := func(local, remote string) Link { return Link{Local: local, Remote: remote, Asks: true} }
	waits := func(rank int, links ...Link) RankLinks { return RankLinks{Rank: rank, Waits: true, Links: links} }
	runs := func(rank int, links ...Link) RankLinks { return RankLinks{Rank: rank, Links: links} }
	for _, test := range []struct {
		name string
		all  []RankLinks
		want []int
	}{
		{"nobody", nil, nil},
		{"asked, and open to nobody else", []RankLinks{waits(0, asks("a:1", "b:1"))}, []int{0}},
		{"not asked", []RankLinks{waits(0, link("a:1", "b:1")), waits(1, link("b:1", "a:1"))}, nil},
		{"asked, and not in the barrier", []RankLinks{runs(0, asks("a:1", "b:1")), runs(1, link("b:1", "a:1"))}, nil},
		{"open to one that waits too", []RankLinks{
			waits(0, link("a:1", "b:1"), asks("a:2", "c:1")), waits(1, link("b:1", "a:1")), runs(2, link("c:1", "a:2")),
		}, []int{0}},
		{"open to one that works", []RankLinks{
			waits(0, link("a:1", "b:1"), asks("a:2", "c:1")), runs(1, link("b:1", "a:1")), runs(2, link("c:1", "a:2")),
		}, nil},
		{"open to one that asks another", []RankLinks{
			waits(0, link("a:1", "b:1"), asks("a:2", "c:1")), runs(1, link("b:1", "a:1"), link("b:2", "d:1")),
			runs(2, link("c:1", "a:2")), waits(3, asks("d:1", "b:2")),
		}, []int{0, 3}},
		{"open to one that asks it on another connection", []RankLinks{
			waits(0, link("a:1", "b:1"), asks("a:2", "b:2")), runs(1, link("b:1", "a:1"), link("b:2", "a:2")),
		}, []int{0}},
		{"open to one that asks one that works", []RankLinks{
			waits(0, link("a:1", "b:1"), asks("a:2", "c:1")), runs(1, link("b:1", "a:1"), link("b:2", "d:1")),
			runs(2, link("c:1", "a:2")), runs(3, asks("d:1", "b:2")),
		}, nil},
		{"open to nobody known", []RankLinks{waits(0, link("a:1", "b:1"), asks("a:2", "c:1")), runs(2, link("c:1", "a:2"))}, nil},
		{"open to the same address, but not the same connection", []RankLinks{
			waits(0, link("a:1", "b:1"), asks("a:2", "c:1")), waits(1, link("b:1", "a:3")), runs(2, link("c:1", "a:2")),
		}, nil},
		{"a connection with itself", []RankLinks{waits(0, link("a:1", "a:2"), link("a:2", "a:1"), asks("a:3", "b:1"))}, []int{0}},
		// This was seen with eight ranks on four hosts that hung. Ranks 1, 2, 4 and 7 wait in the barrier, and the
		// other ranks ask.
		{"as seen", []RankLinks{
			runs(0, link("a:1", "b:1"), link("a:2", "d:7")), waits(1, link("a:3", "b:2"), asks("a:4", "b:3"), asks("a:5", "d:6")),
			waits(2, asks("b:1", "a:1"), link("b:2", "a:3"), asks("b:4", "c:5")), runs(3, link("b:3", "a:4"), link("b:5", "c:4")),
			waits(4, link("c:4", "b:5"), asks("c:6", "c:7"), asks("c:8", "d:8")), runs(5, link("c:5", "b:4"), link("c:7", "c:6")),
			runs(6, link("d:6", "a:5"), link("d:8", "c:8")), waits(7, link("d:7", "a:2")),
		}, []int{1, 2, 4}},
	} {
		if got := Releasable(test.all); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
