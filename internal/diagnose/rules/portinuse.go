package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var portInUse = []rule.Rule{{
	Category: job.PortInUse, Signature: "address-in-use", Confidence: 0.95,
	Meaning: "another process listens on the port that the job wants",
	Hint:    "use MASTER_PORT, which gangrun chooses again for each attempt, instead of a fixed port; end processes that an earlier job has left",
	Needles: []string{"already running at", "specify a different port", "choose a different port", "choose another port", "address already in use", "eaddrinuse", "only one usage of each socket address", "address in use", "is already in use", "port is already allocated", "cannot find empty port", "could not bind to port", "failed to bind to port", "unable to bind to port", "errno: 98", "errno 98", "no address added out of total", "port already in use", "already bound"},
	Match:   textmatch.New(`(?i)already running at \S+:\d+|(?:specify|choose|use|try|pick) (?:a different|another) port\b|address (?:is )?already in use|EADDRINUSE|only one usage of each socket address|: address in use(?:$| \(os error 98)|\bport:? ?\(?\d+\)?,? (?:\w+ )?(?:is|was) already in use|it was already in use|port is already allocated|cannot find empty port in range|(?:could not|failed to|unable to|cannot) bind (?:to )?(?:the )?(?:tcp )?port|errno:? 98\b|no address added out of total|port already in use`),
	Unless:  textmatch.New(`(?:^|\[)W(?:\d{4}|\b)|(?i)trying (?:another|next|port)|using (?:another |a different )?port|instead|\bnext (?:free|available) port|by the form|serving on`),
	Find:    textmatch.New(`\[[^\]]*\]:(?P<artefact>\d{2,5})|port[:= ]+(?P<artefact>\d{2,5})|:(?P<artefact>\d{4,5})\b`),
}}
