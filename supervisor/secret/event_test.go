package secret

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestSecretsAreHidden: no event has a secret that a rank prints, wherever the diagnosis quotes it.
func TestSecretsAreHidden(t *testing.T) {
	const value = "hunter2-and-more"
	spec := job.Spec{Env: map[string]string{"TOKEN": value, "PIN": "12"}, Secret: []string{"TOKEN", "PIN"}}
	said := "ValueError: bad token " + value
	cause := job.Cause{Text: said, Hint: said, Artefact: value, Evidence: []job.Line{{Text: said, Line: 12}}, After: []job.Line{{Text: said, Line: 13}}}
	event := job.Event{
		Text: said, Hint: said, Cause: &cause, Finding: &job.Finding{Text: said, Hint: said, Cause: &cause},
		Exit: &job.Exit{Text: said, Code: 12}, Outcome: &job.Outcome{Exits: []job.Exit{{Text: said, Fault: said}}}, Verdict: &job.Verdict{Reason: said},
	}
	data, err := json.Marshal(Hide(event, Hider(spec)))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(data); strings.Contains(text, value) || strings.Count(text, job.Hidden) != 18 {
		t.Errorf("%d times hidden in %s", strings.Count(text, job.Hidden), text)
	}
	if cause.Evidence[0].Text != said || event.Finding.Text != said || event.Outcome.Exits[0].Text != said {
		t.Error("the original was changed")
	}
}
