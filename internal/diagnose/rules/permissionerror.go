package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const permissionHint = "give the user that runs the ranks access to ${artefact|the file} on every host; root on one host is often nobody on a network file system"

var permissionError = []Rule{{
	Category: job.PermissionError, Signature: "permission-denied", Confidence: 0.95,
	Meaning: "the user may not read, write or execute a file",
	Hint:    permissionHint,
	Classes: []string{"PermissionError"},
	Find:    textmatch.New(`(?:denied|permitted): '(?P<artefact>[^']+)'`),
}, {
	Category: job.PermissionError, Signature: "program-not-executable", Confidence: 1,
	Meaning: "a program may not be executed",
	Hint:    "make it executable (chmod +x), and check that its file system is not mounted noexec",
	Text:    "could not be started: ${title}", Ends: Ends{Statuses: []job.ExitStatus{job.Unstarted}},
	Needles: []string{"permission denied", "operation not permitted"},
	Find:    textmatch.New(`(?:exec:? |exec )?"?(?P<artefact>/[^\s":]+)"?:`),
	Unless:  aboutWorkdir,
}, {
	Category: job.PermissionError, Signature: "program-not-executable", Confidence: 0.9,
	Hint:    "make ${artefact|the program} executable (chmod +x), or start it through its interpreter",
	Needles: []string{"permission denied"},
	Match:   textmatch.New(`: line \d+: (?P<artefact>\S+): Permission denied|^\S+: \d+: (?P<artefact>\S+): Permission denied`),
}, {
	Category: job.PermissionError, Signature: "program-not-executable", Confidence: 0.8,
	Hint: "make the program that the job's script calls executable (chmod +x)",
	Text: "ended with code 126, as a shell does when a command cannot be executed", Ends: Ends{Codes: []int{126}},
}, {
	Category: job.PermissionError, Signature: "permission-denied", Confidence: 0.6, Traits: Weak,
	Hint:    permissionHint,
	Needles: []string{"permission denied", "operation not permitted"},
	Find:    textmatch.New(`(?:denied|permitted): ['"]?(?P<artefact>[^\s'"]+)|(?P<artefact>[^\s'":]*[/.][^\s'":]*)['"]?: (?:Permission denied|Operation not permitted)`),
	Unless:  textmatch.New(`publickey|WARN|perf_event|iptables|\(ignored\)`),
}, {
	Category: job.PermissionError, Signature: "ssh-denied", Confidence: 0.85,
	Meaning: "a host refuses the login, or a batch system the user",
	Hint:    "see that the key is loaded (ssh-add -l) and is in authorized_keys on the host",
	Needles: []string{"permission denied (publickey", "bad uid for job execution", "permission denied, please try again", "user not authorized", "access/permission denied", "not permitted to"},
}, {
	Category: job.PermissionError, Signature: "http-denied", Confidence: 0.9,
	Meaning: "a server refused the job's credentials",
	Hint:    "log in or set the token on every host (as a secret), and accept the licence where the model is gated",
	Classes: []string{"GatedRepoError", "*"},
	Needles: []string{"401 client error", "403 client error", "http error 403", "http error 401", "access to model", "cannot access gated repo", "invalid user token", "accessdenied"},
	Find:    textmatch.New(`url: (?P<artefact>\S+)`),
}}
