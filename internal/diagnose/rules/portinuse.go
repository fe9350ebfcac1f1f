package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var portInUse = []Rule{{
	Category: job.PortInUse, Signature: "address-in-use", Confidence: 0.95,
	Meaning: "another process listens on the port that the job wants",
	Hint:    "use MASTER_PORT, which gangrun chooses again for each attempt, instead of a fixed port; end processes that an earlier job has left",
	Needles: []string{"address already in use", "eaddrinuse", "only one usage of each socket address"},
	Unless:  textmatch.New(`^\[?W\d*|\[W\d*|(?i)trying (?:another|next|port)|using port`),
	Find:    textmatch.New(`\[[^\]]*\]:(?P<artefact>\d{2,5})|port[:= ]+(?P<artefact>\d{2,5})|:(?P<artefact>\d{4,5})\b`),
}}
