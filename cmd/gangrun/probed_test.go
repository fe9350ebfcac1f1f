package main

import (
	"slices"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// What is true of several hosts is told in one line, and once.
func TestNews(t *testing.T) {
	warn := func(host, text string) job.Finding {
		return job.Finding{Severity: job.SeverityWarning, Host: host, Text: text, Hint: "look"}
	}
	p := &probed{hosts: make([]job.Host, 3), told: map[job.Finding]bool{}, findings: []job.Finding{
		warn("h1", "no NVLink is known"), warn("h1", "a GPU is lost"), warn("h2", "no NVLink is known"),
		{Severity: job.SeverityNote, Host: "h3", Text: "no driver"},
	}}
	want := []string{"on h1, h2: no NVLink is known; look", "on h1: a GPU is lost; look"}
	if got := p.news(false); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	p.findings = append(p.findings, warn("h3", "no NVLink is known"))
	want = []string{"on h3: no driver", "on h3: no NVLink is known; look"}
	if got := p.news(true); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := p.news(true); len(got) > 0 {
		t.Errorf("told again: %q", got)
	}
}
