package top

import (
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/record"
	"github.com/gangrun/gangrun/internal/view"
)

// Read returns the data of a run as it is now.
func Read(run home.Run, now time.Time) (Data, error) {
	report, events, err := record.Report(run)
	if err != nil {
		return Data{}, err
	}
	life, err := record.Vitals(run)
	if err != nil {
		return Data{}, err
	}
	f := view.NewFollower(run)
	for _, e := range events {
		f.Add(e)
	}
	d := Data{Status: f.Status(report.State, life), News: f.News(), At: now}
	d.Hosts, d.GPUs = f.Places()
	return d, nil
}

// Print prints a screen with all ranks, without colours.
func Print(w io.Writer, d Data, width int) error {
	s := NewScreen()
	s.SetData(d)
	s.Width, s.Height = width, headLines+max(1, len(d.Now))+min(mostBelow, len(d.News))+1
	for s.room() < len(d.Now) {
		s.Height++
	}
	lines := s.Lines()
	lines = lines[:len(lines)-1] // without the line of keys
	for i := range lines {
		lines[i] = strings.TrimRight(ansi.Strip(lines[i]), " ")
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}
