package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/job"
)

// unknown has rules for ends that do not show a reason.
var unknown = []rule.Rule{{
	Category: job.Unknown, Signature: "exit-code", Confidence: 0.3, Traits: rule.Generic | rule.Mute,
	Meaning: "the rank ended with a code that is not 0 and printed no reason",
	Hint:    "read the rank's last lines; let the program say why it ends",
	Text:    "ended with code ${code}${silence}",
	Ends:    rule.Ends{Statuses: []job.ExitStatus{job.Exited}},
}}
