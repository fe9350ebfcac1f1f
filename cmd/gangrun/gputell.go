package main

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

// tellEvery is how often at most a waiting gang tells of what has not become
// another thing: that it waits for another gang to end, or for older ones to start.
const tellEvery = 30 * time.Second

// What is in the way of a gang that waits.
const (
	wayHeld   = "held"   // by other gangs
	wayUsed   = "used"   // by others than gangrun
	wayKept   = "kept"   // for gangs that wait longer
	wayJoined = "joined" // nothing, but those that are idle are joined badly
)

// told is what was told of a wait last.
type told struct {
	at   time.Time
	text string
}

// tell says what is waited for, when that is news.
func (w *gpuWait) tell(why error, now job.Inventory, level job.Locality) {
	var none *topology.NoPlacement
	if !errors.As(why, &none) || w.p.emit == nil {
		return
	}
	gpus := text.Count(w.p.want.Ranks*w.p.want.GPUs, "GPU")
	text := "waiting for " + gpus
	switch level {
	case job.LocalityAny:
	case job.LocalityRack:
		text += " in one rack"
	default:
		text += " on one " + string(level)
	}
	if way := inTheWay(none.Way); way != "" {
		text += ": " + way
	}
	kind := string(level) + " " + w.kind(none.Way)
	last := w.told[kind]
	if text == last.text || !last.at.IsZero() && w.now().Sub(last.at) < tellEvery {
		return
	}
	w.told[kind] = told{w.now(), text}
	if choice, err := topology.PlaceGPUs(w.p.want, now, w.p.not); err == nil {
		if at, ever := w.opens(choice.Level); ever {
			text += fmt.Sprintf("; %s are free at level %s, which it takes in %s at the latest", gpus, choice.Level, max(0, w.since.Add(at).Sub(w.now())).Round(time.Second))
		}
	}
	w.p.emit(job.Event{Time: time.Now(), Kind: job.KindNote, State: job.StateWaiting, Text: text})
}

// kind says of what is in the way what weighs most.
func (w *gpuWait) kind(way []topology.Blocker) string {
	kind := wayJoined
	weight := map[string]int{wayJoined: 0, wayKept: 1, wayUsed: 2, wayHeld: 3}
	for _, b := range way {
		one := wayUsed
		switch {
		case w.held[gpuOf{b.Host, b.Device}]:
			one = wayHeld
		case b.Busy == keptForOlder:
			one = wayKept
		}
		if weight[one] > weight[kind] {
			kind = one
		}
	}
	return kind
}

// inTheWay says of GPUs who has them, those of one host and holder together.
func inTheWay(way []topology.Blocker) string {
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

// warn tells of each file of the leases once what is wrong with it.
func (w *gpuWait) warn(states []*lease.Waiting) {
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
			if warning == "" || w.warned[warning] || w.p.emit == nil {
				continue
			}
			w.warned[warning] = true
			w.p.emit(job.Event{Time: time.Now(), Kind: job.KindNote, Text: text.Printable(fmt.Sprintf("leases of %s: %s", w.p.hosts[i].Name, warning))})
		}
	}
}
