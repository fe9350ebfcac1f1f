package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const peerHint = "the other end went away: look for the rank that failed first; where none did, look at the network between the hosts"

var networkError = []Rule{{
	Category: job.NetworkError, Signature: "peer-closed", Confidence: 0.6, Traits: Cascade,
	Meaning: "a connection to another rank ended, usually because that rank failed",
	Hint:    peerHint,
	Needles: []string{"connection closed by peer", "connection closed by remote peer", "connection reset by peer", "connection was likely closed", "socket closed", "connection closed by foreign host", "broken pipe", "recvvalue failed",
		"sendbytes failed", "recvbytes failed", "pair closure", "peer closed", "peer hung up", "connection was forcibly closed", "remote end closed connection", "server socket has failed", "unexpected connection close"},
	Find: textmatch.New(`(?:peer|error|endpoint) ?\[?(?P<artefact>\d+\.\d+\.\d+\.\d+)\]?:\d+`),
}, {
	Category: job.NetworkError, Signature: "peer-closed", Confidence: 0.6, Traits: Cascade,
	Hint:    peerHint,
	Classes: []string{Message},
	Match: textmatch.New(`(?i)\b(?:lost|broken|closed|reset|dropped|no) (?:\w+ ){0,3}(?:connection|contact|peers?)\b|\b(?:connection|contact|peer|rank|process|worker|node)s? (?:\w+ ){0,3}(?:lost|closed|died|dead|gone|disappeared|disconnected|reset)\b|` +
		`\b(?:another|other|remote) (?:rank|process|node|worker|task)e?s?\b`),
}, {
	Category: job.NetworkError, Signature: "peer-closed", Confidence: 0.6, Traits: Cascade,
	Hint:    peerHint,
	Classes: []string{"ConnectionResetError", "BrokenPipeError", "ConnectionAbortedError", "ClientDisconnectedError"},
}, {
	Category: job.NetworkError, Signature: "peer-closed", Confidence: 0.6, Traits: Cascade | Generic,
	Hint: peerHint,
	Text: "ended by ${signal}: what read its output or its socket went away", Ends: Ends{Signals: []int{13}},
}, {
	Category: job.NetworkError, Signature: "nccl-remote-error", Confidence: 0.6, Traits: Cascade,
	Meaning: "NCCL lost another rank: it ended, or the network failed",
	Hint:    peerHint + "; NCCL_DEBUG=INFO shows which interface NCCL uses, and NCCL_SOCKET_IFNAME sets it",
	Needles: []string{"ncclremoteerror", "unhandled system error", "ncclsystemerror", "remote process exited or there was a network error", "got completion from peer", "net/ib : got completion"},
}, {
	Category: job.NetworkError, Signature: "connection-refused", Confidence: 0.6, Traits: Cascade,
	Meaning: "no process listens on the port to which the job connects",
	Hint:    "the rank or service that should listen has not started or has ended: look at it first; then at the address and port ${artefact|itself}",
	Needles: []string{"connection refused", "econnrefused"},
	Find:    textmatch.New(`(?P<artefact>[\w.\-\[\]]+:\d{2,5})`),
}, {
	Category: job.NetworkError, Signature: "unreachable", Confidence: 0.85,
	Meaning: "the network has no route to a host, or the host does not answer",
	Hint:    "check routes, firewalls and interface names (NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME) between the hosts",
	Needles: []string{"no route to host", "network is unreachable", "host is unreachable", "connection timed out", "cannot assign requested address", "destination is unreachable", "destination host unreachable", "unable to find address for"},
	Find:    textmatch.New(`(?P<artefact>\d+\.\d+\.\d+\.\d+(?:[:<]\d{2,5})?)|find address for: (?P<artefact>\S+)`),
}, {
	Category: job.NetworkError, Signature: "name-resolution", Confidence: 0.9,
	Meaning: "a host name does not resolve",
	Hint:    "check the name ${artefact|given} in DNS or /etc/hosts on every host; MASTER_ADDR may be set wrongly",
	Needles: []string{"name or service not known", "temporary failure in name resolution", "failed to resolve", "could not resolve host", "nodename nor servname", "no address associated with hostname", "getaddrinfo failed", "unable to resolve host"},
	Find:    textmatch.New(`(?:resolve(?: host(?:name)?)?:?|hostname/IP) ['"]?(?P<artefact>[\w.-]+)|(?:addrinfo|address for) (?P<artefact>[\w.-]+)`),
	Unless:  textmatch.New(`socket\.cpp.*\[W|^\[W|WARNING`),
}, {
	Category: job.NetworkError, Signature: "http", Confidence: 0.85,
	Meaning: "a server on the network could not be reached or failed",
	Hint:    "fetch models and data beforehand and use them offline (HF_HUB_OFFLINE=1), or set the proxy on every host",
	Needles: []string{"max retries exceeded with url", "read timed out", "we couldn't connect to '", "502 server error", "503 server error", "504 server error", "500 server error", "429 client error", "urlopen error", "ssl: certificate_verify_failed", "remotedisconnected", "incompleteread"},
	Find:    textmatch.New(`host='(?P<artefact>[^']+)'|connect to '(?P<artefact>[^']+)'|url: (?P<artefact>\S+)`),
}, {
	Category: job.NetworkError, Signature: "http", Confidence: 0.85,
	Hint:    "fetch models and data beforehand and use them offline (HF_HUB_OFFLINE=1), or set the proxy on every host",
	Classes: []string{"URLError", "HTTPError", "MaxRetryError", "ReadTimeout", "ReadTimeoutError", "ConnectTimeout", "ConnectionError", "ProxyError", "SSLError", "LocalEntryNotFoundError", "OfflineModeIsEnabled", "ChunkedEncodingError"},
}, {
	Category: job.NetworkError, Signature: "infiniband", Confidence: 0.8,
	Meaning: "an InfiniBand or RoCE device or queue failed",
	Hint:    "check the port (ibstat), its cable and the fabric; NCCL_IB_DISABLE=1 or NCCL_IB_HCA avoids a bad one",
	Needles: []string{"ibv_", "got async event", "transport retry count exceeded", "local catastrophic error", "port error", "endpoint timeout", "ib link"},
	Match:   textmatch.New(`(?:Call to )?(?P<artefact>ibv_\w+) (?:failed|error)|Got async event|[Tt]ransport retry count exceeded|local catastrophic error|(?P<artefact>mlx\w+).*port error|ERROR.*[Ee]ndpoint timeout`),
}}
