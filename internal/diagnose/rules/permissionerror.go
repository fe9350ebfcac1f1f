package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const permissionHint = "give the user that runs the ranks access to ${artefact|the file} on every host; root on one host is often nobody on a network file system"

var permissionError = []rule.Rule{{
	Category: job.PermissionError, Signature: "permission-denied", Confidence: 0.95,
	Meaning: "the user may not read, write or execute a file",
	Hint:    permissionHint,
	Classes: []string{"PermissionError"},
	Find:    textmatch.New(`(?:denied|permitted): '(?P<artefact>[^']+)'`),
}, {
	Category: job.PermissionError, Signature: "program-not-executable", Confidence: 1,
	Meaning: "a program may not be executed",
	Hint:    "make it executable (chmod +x), and check that its file system is not mounted noexec",
	Text:    "could not be started: ${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Unstarted}},
	Needles: []string{"permission denied", "operation not permitted"},
	Find:    textmatch.New(`(?:exec:? |exec )?"?(?P<artefact>/[^\s":]+)"?:`),
	Unless:  aboutWorkdir,
}, {
	Category: job.PermissionError, Signature: "program-not-executable", Confidence: 0.9,
	Hint:    "make ${artefact|the program} executable (chmod +x), or start it through its interpreter",
	Needles: []string{"permission denied"},
	Match:   textmatch.New(`execve\(\): (?P<artefact>[^:]+): Permission denied|: line \d+: (?P<artefact>\S+): Permission denied|^\S+: \d+: (?P<artefact>\S+): Permission denied`),
}, {
	Category: job.PermissionError, Signature: "program-not-executable", Confidence: 0.8,
	Hint: "make the program that the job's script calls executable (chmod +x)",
	Text: "ended with code 126, as a shell does when a command cannot be executed", Ends: rule.Ends{Codes: []int{126}},
}, {
	Category: job.PermissionError, Signature: "permission-denied", Confidence: 0.6, Traits: rule.Weak,
	Hint:    permissionHint,
	Needles: []string{"permission denied", "operation not permitted"},
	Find:    textmatch.New(`(?:denied|permitted): ['"]?(?P<artefact>[^\s'"]+)|(?P<artefact>[^\s'":]*[/.][^\s'":]*)['"]?: (?:Permission denied|Operation not permitted)`),
	Unless:  textmatch.New(`publickey|WARN|perf_event|iptables|\(ignored\)`),
}, {
	Category: job.PermissionError, Signature: "ssh-denied", Confidence: 0.85,
	Meaning: "a host refuses the login, or a batch system refuses the user",
	Hint:    "see that the key is loaded (ssh-add -l) and is in authorized_keys on the host",
	Needles: []string{"permission denied (publickey", "bad uid for job execution", "permission denied, please try again", "user not authorized", "access/permission denied", "not permitted to", "host key verification failed", "remote host identification has changed"},
}, {
	Category: job.PermissionError, Signature: "http-denied", Confidence: 0.9,
	Meaning: "a server refused the job's credentials",
	Hint:    "log in or set the token on every host (as a secret), and accept the licence where the model is gated",
	Classes: []string{"*"},
	Needles: []string{"401 client error", "403 client error", "http error 403", "http error 401", "access to model", "cannot access gated repo", "invalid user token", "accessdenied", "api_key not configured", "unable to locate credentials", "expiredtoken", "invalidaccesskeyid", "signaturedoesnotmatch", "trying to access a gated repo", "is restricted and you are not in the authorized list", "do not have permission to access the requested", "password authentication failed", "access denied for user", "permission_denied: ", "authentication failed for", "401 unauthorized", "403 forbidden", "invalid api key", "you must be authenticated", "token is required", "(401)", "(403)"},
	Find:    textmatch.New(`url: (?P<artefact>\S+)`),
	Unless:  textmatch.New(`Repository ?Not ?Found|AccessDeniedException: /`),
}, {
	Category: job.PermissionError, Signature: "http-denied", Confidence: 0.9,
	Hint:    "log in or set the token on every host (as a secret)",
	Classes: []string{"UsageError", "CommError"},
	Needles: []string{"api_key not configured", "do not have permission", "user is not logged in"},
}, {
	Category: job.PermissionError, Signature: "http-denied", Confidence: 0.9,
	Hint:    "log in or set the token on every host (as a secret)",
	Classes: []string{"GatedRepoError", "NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "TokenRetrievalError", "UnauthorizedSSOTokenError", "SSOTokenLoadError", "DefaultCredentialsError", "RefreshError", "ClientAuthenticationError", "AuthenticationError", "AuthenticationException", "AuthorizationError", "Forbidden", "Unauthorized", "LocalTokenNotFoundError", "NoAuthTokenError"},
}, {
	Category: job.PermissionError, Signature: "permission-denied", Confidence: 0.85,
	Hint:    permissionHint,
	Classes: []string{rule.Message},
	Match:   textmatch.New(`(?i)\(AccessDenied(?:Exception)?\)|\bis not authorized to perform\b|\b403 forbidden\b|\bAuthorization(?:PermissionMismatch|Failed)\b|\b(?:access|permission) (?:is |was )?denied\b|\bdoes not have \S+ (?:access|permission)`),
}, {
	Category: job.PermissionError, Signature: "permission-denied", Confidence: 0.9,
	Hint:    permissionHint,
	Classes: []string{"PermissionDeniedError", "ReadOnlyDatabaseError", "PermissionDenied", "AccessDeniedError", "InsufficientPrivilege"},
}, {
	Category: job.PermissionError, Signature: "permission-denied", Confidence: 0.9,
	Hint:    permissionHint,
	Needles: []string{"permission to access file denied", "accessdeniedexception", "accesscontrolexception"},
	Match:   textmatch.New(`severe \(9\): permission to access file denied(?:.*file (?P<artefact>\S+))?|Exception in thread ".*(?:AccessDenied|AccessControl)Exception: *(?P<artefact>\S+)?|^(?:\w+\.)*AccessControlException: `),
}, {
	Category: job.PermissionError, Signature: "permission-denied", Confidence: 0.9,
	Hint:    permissionHint,
	Classes: []string{"fortran runtime error", "forrtl severe", "std::filesystem::filesystem_error", "std::filesystem::__cxx11::filesystem_error", "std::system_error", "std::runtime_error", "std::ios_base::failure", "go panic", "rust panic", "OSError", "RuntimeError", "NotFoundError", "SystemError", "IOError", "OperationalError"},
	Needles: []string{"attempt to write a readonly database", "permission denied", "permissiondenied", "operation not permitted"},
	Find:    textmatch.New(`file '(?P<artefact>[^']+)': Permission denied|Permission denied \[(?P<artefact>[^\]]+)\]|open (?P<artefact>/\S+): permission denied`),
	Unless:  textmatch.New(`publickey|perf_event|ibv_|CUDA`),
}}
