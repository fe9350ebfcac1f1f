package hosts

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor"
)

// TestUnreachedText checks that a message about hosts that were not reached first says what to do about them, before
// it mentions that there are fewer ranks.
func TestUnreachedText(t *testing.T) {
	hinted := func(host string) agents.Unreached {
		return agents.Unreached{Host: host, Err: &failure.Error{Err: errors.New("h1 says no"), Hint: "ask it kindly"}}
	}
	mute := func(host string) agents.Unreached {
		return agents.Unreached{Host: host, Err: errors.New("it has gone")}
	}
	for want, unreached := range map[string][]agents.Unreached{
		"ask it kindly": {hinted("h1"), hinted("h2")},
		"look at h2, h3 and the network there, then run again":            {mute("h2"), mute("h3")},
		"ask it kindly; look at h3 and the network there, then run again": {hinted("h1"), mute("h3")},
	} {
		if _, got := UnreachedText(unreached); got != want {
			t.Errorf("hint %q, want %q", got, want)
		}
		p := &Found{hosts: make([]job.Host, 1), unreached: unreached}
		var none supervisor.NoPlacement
		if err := p.WithUnreached(supervisor.NoPlacement{Text: "no", Hint: "ask for fewer ranks"}); !errors.As(err, &none) || none.Hint != want+"; or ask for fewer ranks" || !strings.HasPrefix(none.Text, "no; not reached: ") {
			t.Errorf("%+v", none)
		}
	}
}

// TestNews checks that news that apply to several hosts are printed in one line, and once.
func TestNews(t *testing.T) {
	warn := func(host, text string) job.Finding {
		return job.Finding{Severity: job.SeverityWarning, Host: host, Text: text, Hint: "look"}
	}
	p := &Found{hosts: make([]job.Host, 3), reported: map[job.Finding]bool{}, findings: []job.Finding{
		warn("h1", "no NVLink is known"), warn("h1", "a GPU is lost"), warn("h2", "no NVLink is known"),
		{Severity: job.SeverityNote, Host: "h3", Text: "no driver"},
	}}
	want := []string{"on h1, h2: no NVLink is known; look", "on h1: a GPU is lost; look"}
	if got := p.News(false); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	p.findings = append(p.findings, warn("h3", "no NVLink is known"))
	want = []string{"on h3: no driver", "on h3: no NVLink is known; look"}
	if got := p.News(true); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := p.News(true); len(got) > 0 {
		t.Errorf("told again: %q", got)
	}
}
