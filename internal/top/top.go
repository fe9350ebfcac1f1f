package top

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/view"
)

// redrawEvery is the time between two updates of the screen.
const redrawEvery = time.Second

// endLimit is the maximum time that Show waits at the end for the goroutines that read the run's files. The
// file system may hang.
const endLimit = time.Second

// Stacks collects the stacks of a run's ranks.
type Stacks func(context.Context, home.Run) (home.Stacks, error)

// Show shows a run on the terminal of in and out until the user ends it or ctx ends. The error is
// ErrInterrupted if a SIGINT ended it.
func Show(ctx context.Context, run home.Run, in, out *os.File, stacks Stacks) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := newSource(run)
	read := make(chan struct{})
	go func() { defer close(read); s.Follow(ctx) }()
	m := &model{ctx: ctx, run: run, source: s, screen: NewScreen(), stacks: stacks}
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out)).Run()
	cancel()
	m.wait(endLimit)
	select {
	case <-read:
	case <-time.After(endLimit):
	}
	if errors.Is(err, tea.ErrInterrupted) {
		return ErrInterrupted
	}
	return err
}

// ErrInterrupted is the error of Show if a SIGINT ended it.
var ErrInterrupted = errors.New("interrupted")

// model connects a Screen with bubbletea.
type model struct {
	ctx    context.Context
	run    home.Run
	source *source
	screen *Screen
	stacks Stacks
	asked  chan struct{} // closed when the latest request for stacks has ended; nil before the first request
}

type (
	tick   time.Time
	answer []string
)

func again() tea.Cmd { return tea.Tick(redrawEvery, func(t time.Time) tea.Msg { return tick(t) }) }

// Init implements tea.Model.
func (m *model) Init() tea.Cmd {
	return tea.Tick(redrawEvery/10, func(t time.Time) tea.Msg { return tick(t) })
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tick:
		m.screen.SetData(m.source.Data(time.Time(msg)))
		return m, again()
	case tea.WindowSizeMsg:
		m.screen.Width, m.screen.Height = msg.Width, msg.Height
		m.screen.SetData(m.source.Data(time.Now()))
	case answer:
		m.screen.SetStacks(msg)
	case tea.KeyPressMsg:
		if msg.String() == "ctrl+z" {
			return m, tea.Suspend
		}
		switch m.screen.Key(msg.String()) {
		case Quit:
			return m, tea.Quit
		case AskStacks:
			return m, m.ask()
		}
	}
	return m, nil
}

// ask returns a command that collects the stacks.
func (m *model) ask() tea.Cmd {
	done := make(chan struct{})
	m.asked = done
	return func() tea.Msg {
		defer close(done)
		found, err := m.stacks(m.ctx, m.run)
		if err != nil {
			lines := answer{"error: " + err.Error()}
			var hinted interface{ Hint() string }
			if errors.As(err, &hinted) && hinted.Hint() != "" {
				lines = append(lines, "hint: "+hinted.Hint())
			}
			return lines
		}
		return answer(append([]string{fmt.Sprintf("taken at %s", found.At.Local().Format(time.TimeOnly))}, view.StackLines(found)...))
	}
}

// wait waits until the latest request for stacks has ended, for limit at most.
func (m *model) wait(limit time.Duration) {
	if m.asked == nil {
		return
	}
	select {
	case <-m.asked:
	case <-time.After(limit):
	}
}

// View implements tea.Model.
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.screen.Lines(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "gangrun top " + m.run.ID
	return v
}
