package gpuqueue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/topology"
	"github.com/gangrun/gangrun/topology/lease"
)

// noteEvery is the shortest time between two notes of a waiting gang about obstacles of the same
// kind.
const noteEvery = 30 * time.Second

// obstacle is a reason why a gang has to wait. The most important reason is the last one.
type obstacle int

const (
	badLinks obstacle = iota // GPUs are free, but not close enough together
	keptGPUs                 // GPUs are kept for gangs that wait longer
	usedGPUs                 // programs other than gangrun use GPUs
	heldGPUs                 // other gangs hold GPUs
)

// noteKind is the kind of a note that a waiting gang makes.
type noteKind struct {
	level    job.Locality
	obstacle obstacle
}

// note is a note that was reported last.
type note struct {
	at   time.Time
	text string
}

// report reports what the gang waits for, unless it has reported that already.
func (w *wait) report(why error, now job.Inventory, level job.Locality) {
	var none *topology.NoPlacement
	if !errors.As(why, &none) || w.gang.Emit == nil {
		return
	}
	gpus := text.Count(w.gang.Want.Ranks*w.gang.Want.GPUs, "GPU")
	line := "waiting for " + gpus
	switch level {
	case job.LocalityAny:
	case job.LocalityRack:
		line += " in one rack"
	default:
		line += " on one " + string(level)
	}
	if holders := holdersText(none.Way); holders != "" {
		line += ": " + holders
	}
	kind := noteKind{level, w.obstacle(none.Way)}
	last := w.notes[kind]
	if line == last.text || !last.at.IsZero() && w.now().Sub(last.at) < noteEvery {
		return
	}
	w.notes[kind] = note{w.now(), line}
	if choice, err := topology.PlaceGPUs(w.gang.Want, now, w.gang.Excluded); err == nil {
		if after, ever := w.acceptsAfter(choice.Level); ever {
			line += fmt.Sprintf("; %s are free at level %s, which it takes in %s at the latest", gpus, choice.Level, max(0, w.since.Add(after).Sub(w.now())).Round(time.Second))
		}
	}
	w.gang.Emit(job.Event{Time: time.Now(), Kind: job.KindNote, State: job.StateWaiting, Text: line})
}

// obstacle returns the most important obstacle among the GPUs that the gang cannot use.
func (w *wait) obstacle(way []topology.Blocker) obstacle {
	worst := badLinks
	for _, b := range way {
		id, one := gpuID{b.Host, b.Device}, usedGPUs
		switch {
		case w.held[id]:
			one = heldGPUs
		case w.kept[id]:
			one = keptGPUs
		}
		worst = max(worst, one)
	}
	return worst
}

// holdersText returns a text that names the holders of GPUs. It groups the GPUs by host and holder.
func holdersText(way []topology.Blocker) string {
	type holder struct{ host, busy string }
	var order []holder
	gpus := map[holder][]string{}
	for _, b := range way {
		h := holder{b.Host, b.Busy}
		if gpus[h] == nil {
			order = append(order, h)
		}
		gpus[h] = append(gpus[h], b.Device)
	}
	var parts []string
	for _, h := range order[:min(len(order), 4)] {
		be := "is"
		if len(gpus[h]) > 1 {
			be = "are"
		}
		parts = append(parts, text.Printable(fmt.Sprintf("%s of %s %s %s", strings.Join(gpus[h], " "), h.host, be, h.busy)))
	}
	if len(order) > 4 {
		parts = append(parts, fmt.Sprintf("and so on for %d more", len(order)-4))
	}
	return strings.Join(parts, ", ")
}

// warn reports what is wrong with the files of the leases. It reports each problem once.
func (w *wait) warn(states []*lease.Waiting) {
	for i, state := range states {
		if state == nil {
			continue
		}
		warnings := slices.Clone(state.Warnings)
		for _, l := range state.Leases {
			if l.State == lease.StateBarred || l.State == lease.StateDead {
				warnings = append(warnings, l.Warning)
			}
		}
		for _, warning := range warnings {
			if warning == "" || w.warned[warning] || w.gang.Emit == nil {
				continue
			}
			w.warned[warning] = true
			w.gang.Emit(job.Event{Time: time.Now(), Kind: job.KindNote, Text: text.Printable(fmt.Sprintf("leases of %s: %s", w.gang.Hosts[i].Name, warning))})
		}
	}
}
