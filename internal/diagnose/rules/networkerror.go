package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const peerHint = "the other end went away: look for the rank that failed first; where none did, look at the network between the hosts"

// peerGone matches the words with which a program says that it has lost another one of the job.
var peerGone = textmatch.New(`(?i)\b(?:lost|broken|closed|reset|dropped|no) (?:\w+ ){0,3}(?:connection|contact|peers?)\b|\b(?:connection|contact|peer|rank|process|worker|node|member|task|neighbou?r|partner|client|other (?:end|side))s? (?:\w+ ){0,3}(?:lost|closed|died|dead|gone|disappeared|disconnected|reset)\b|` +
	`\b(?:another|other|remote) (?:rank|process|node|worker|task)e?s?\b`)

var networkError = []rule.Rule{{
	Category: job.NetworkError, Signature: "store-unreachable", Confidence: 0.75, Traits: rule.Peer,
	Meaning: "ranks could not connect to the store of rank 0, by which they find each other",
	Hint:    "see whether rank 0 runs, and whether MASTER_ADDR and MASTER_PORT can be reached from the other hosts",
	Needles: []string{"the client socket has timed out after", "the client socket has failed to connect", "connection to the c10d store has failed", "failed to connect to any network address"},
	Match:   textmatch.New(`(?:timed out after|failed to connect|connection to the C10d store)`),
	Find:    textmatch.New(`connect to (?:any network address of )?\(?(?P<artefact>[\w.\-]+, \d+)`),
	Unless:  textmatch.New(`^\[?W\d+ |\[W\d* `),
}, {
	Category: job.NetworkError, Signature: "store-unreachable", Confidence: 0.6, Traits: rule.Cascade,
	Hint:    "see whether the agent on the first host runs, and whether it can be reached from the other hosts",
	Needles: []string{"rendezvousconnectionerror", "rendezvousclosederror", "failed to send a keep-alive heartbeat to the rendezvous", "polled an error from coordination service", "failed to send rpc to coordination service", "distributed service detected fatal errors", "store->get('0') got error", "should dump\" flag", "disconnecterror"},
}, {
	Category: job.NetworkError, Signature: "peer-closed", Confidence: 0.6, Traits: rule.Cascade,
	Meaning: "a connection to another rank ended, usually because that rank failed",
	Hint:    peerHint,
	Needles: []string{"connection closed by peer", "connection closed by remote peer", "connection reset by peer", "connection was likely closed", "socket closed", "connection closed by foreign host", "broken pipe", "recvvalue failed", "sendbytes failed", "recvbytes failed", "peer closed", "peer hung up", "connection was forcibly closed", "remote end closed connection", "unexpected connection close", "transport is closing", "connection aborted", "connection to rank ", "connection to peer ", "lost connection to rank", "lost peer ", "lost contact with rank"},
	Find:    textmatch.New(`(?:peer|error|endpoint) ?\[?(?P<artefact>\d+\.\d+\.\d+\.\d+)\]?:\d+`),
}, {
	Category: job.NetworkError, Signature: "peer-closed", Confidence: 0.6, Traits: rule.Cascade,
	Hint:    peerHint,
	Classes: []string{rule.Message, "ConnectionError"},
	Match:   peerGone,
}, {
	Category: job.NetworkError, Signature: "peer-closed", Confidence: 0.6, Traits: rule.Cascade,
	Hint:    peerHint,
	Classes: []string{"ConnectionResetError", "BrokenPipeError", "ConnectionAbortedError", "ClientDisconnectedError", "ConnectionRefusedError"},
}, {
	Category: job.NetworkError, Signature: "peer-closed", Confidence: 0.6, Traits: rule.Cascade | rule.Generic,
	Hint: peerHint,
	Text: "ended by ${signal}: what read its output or its socket went away", Ends: rule.Ends{Signals: []int{13}},
}, {
	Category: job.NetworkError, Signature: "nccl-remote-error", Confidence: 0.6, Traits: rule.Cascade,
	Meaning: "NCCL lost another rank: it ended, or the network failed",
	Hint:    peerHint + "; NCCL_DEBUG=INFO shows which interface NCCL uses, and NCCL_SOCKET_IFNAME sets it",
	Needles: []string{"ncclremoteerror", "unhandled system error", "ncclsystemerror", "remote process exited or there was a network error", "got completion from peer", "net/ib : got completion"},
}, {
	Category: job.NetworkError, Signature: "connection-refused", Confidence: 0.6, Traits: rule.Cascade,
	Meaning: "no process listens on the port to which the job connects",
	Hint:    "the rank or service that should listen has not started or has ended: look at it first; then at the address and port ${artefact|itself}",
	Needles: []string{"connection refused", "econnrefused"},
	Find:    textmatch.New(`(?P<artefact>[\w.\-\[\]]+:\d{2,5})`),
}, {
	Category: job.NetworkError, Signature: "unreachable", Confidence: 0.85,
	Meaning: "the network has no route to a host, or the host does not answer",
	Hint:    "check routes, firewalls and interface names (NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME) between the hosts",
	Unless:  textmatch.New(`^\[?W\d+ |\[W\d* |^ssh: connect to host`),
	Needles: []string{"no route to host", "network is unreachable", "host is unreachable", "connection timed out", "cannot assign requested address", "destination is unreachable", "destination host unreachable", "unable to find address for", "unable to find interface for", "psm2 no hfi units are active", "psm3 no nic units", "endpoint is unreachable", "no usable network interface", "none of the network interfaces"},
	Find:    textmatch.New(`(?P<artefact>\d+\.\d+\.\d+\.\d+(?:[:<]\d{2,5})?)|find address for: (?P<artefact>\S+)`),
}, {
	Category: job.NetworkError, Signature: "name-resolution", Confidence: 0.9,
	Meaning: "a host name does not resolve",
	Hint:    "check the name ${artefact|given} in DNS or /etc/hosts on every host; MASTER_ADDR may be set wrongly",
	Needles: []string{"unknownhostexception", "no such host", "name does not resolve", "name or service not known", "temporary failure in name resolution", "failed to resolve", "could not resolve host", "nodename nor servname", "no address associated with hostname", "getaddrinfo failed", "unable to resolve host"},
	Find:    textmatch.New(`(?:resolve(?: host(?:name)?)?:?|hostname/IP) ['"]?(?P<artefact>[\w.-]+)|(?:addrinfo|address for) (?P<artefact>[\w.-]+)`),
	Unless:  textmatch.New(`socket\.cpp.*\[W|^\[W|WARNING`),
}, {
	Category: job.NetworkError, Signature: "http", Confidence: 0.85,
	Meaning: "a server on the network could not be reached or failed",
	Hint:    "fetch models and data beforehand and use them offline (HF_HUB_OFFLINE=1), or set the proxy on every host",
	Needles: []string{"retry(total=0", "max retries exceeded with url", "read timed out", "we couldn't connect to '", "502 server error", "503 server error", "504 server error", "500 server error", "429 client error", "urlopen error", "ssl: certificate_verify_failed", "remotedisconnected", "incompleteread"},
	Find:    textmatch.New(`host='(?P<artefact>[^']+)'|connect to '(?P<artefact>[^']+)'|url: (?P<artefact>\S+)`),
}, {
	Category: job.NetworkError, Signature: "http", Confidence: 0.85,
	Hint: "fetch models and data beforehand and use them offline (HF_HUB_OFFLINE=1), or set the proxy on every host",
	Classes: []string{"URLError", "HTTPError", "MaxRetryError", "ReadTimeout", "ReadTimeoutError", "ConnectTimeout", "ConnectionError", "ProxyError", "SSLError", "LocalEntryNotFoundError", "OfflineModeIsEnabled", "ChunkedEncodingError",
		"EndpointUnavailableError", "ServerDisconnectedError", "ClientConnectorError", "ClientConnectionError", "ServerTimeoutError", "EndpointConnectionError", "ConnectTimeoutError", "NewConnectionError", "socket.timeout", "timeout", "gaierror", "RemoteProtocolError", "ConnectError", "APIConnectionError", "NameResolutionError", "ConnectionClosedError"},
	Unless: peerGone,
}, {
	Category: job.NetworkError, Signature: "infiniband", Confidence: 0.8,
	Meaning: "an InfiniBand or RoCE device or queue failed",
	Hint:    "check the port (ibstat), its cable and the fabric; NCCL_IB_DISABLE=1 or NCCL_IB_HCA avoids a bad one",
	Needles: []string{"ibv_", "got async event", "transport retry count exceeded", "local catastrophic error", "port error", "endpoint timeout", "ib link"},
	Match:   textmatch.New(`(?:Call to )?(?P<artefact>ibv_\w+) (?:failed|error)|Got async event|[Tt]ransport retry count exceeded|local catastrophic error|(?P<artefact>mlx\w+).*port error|ERROR.*[Ee]ndpoint timeout`),
}, {
	Category: job.NetworkError, Signature: "nccl-network", Confidence: 0.8, Traits: rule.Peer,
	Meaning: "NCCL found no usable network interface, or an InfiniBand queue gave up",
	Hint:    "check the port (ibstat), its cable and the fabric; NCCL_SOCKET_IFNAME and NCCL_IB_HCA choose other interfaces",
	Needles: []string{"no socket interface found", "no interface found", "got completion from peer", "async fatal event", "ibv_wc_retry_exc_err", "transport retry counter exceeded", "transport retry count exceeded", "port active"},
	Match:   textmatch.New(`no (?:socket )?interface found|status=(?:12\b|IBV_WC_RETRY_EXC_ERR)|async fatal event|[Tt]ransport retry count(?:er)? exceeded`),
	Find:    textmatch.New(`(?P<artefact>mlx\w+)`),
}, {
	Category: job.NetworkError, Signature: "link-down", Confidence: 0.95, Traits: rule.Kernel,
	Meaning: "the network card of a host lost its link",
	Hint:    "check the cable, the port of the switch and the card of that host",
	Text:    "the network of the host failed (${title})",
	Needles: []string{"link down", "link is down", "cable error", "port module event", "nic link is down", "lost carrier", "link_down", "port error", "tx timeout", "transmit queue", "health compromised", "mlx5_health_check_fatal", "firmware fatal", "lost signal", "fw fatal", "link failure"},
	Match:   textmatch.New(`(?i)(?:mlx\d\w*|ib\d|eth\d|en\w+|bond\d|hfi1\w*|bnxt\w*|ice|i40e|ixgbe|igb)\b.*(?:link (?:is )?down|cable error|lost carrier|high temperature)|Port: \d+ Link DOWN|Port module event.*(?:error|High Temperature)|NETDEV WATCHDOG|mlx\d_core .*(?:health compromised|[Ff]atal error|FW fatal)`),
}, {
	Category: job.NetworkError, Signature: "ssh-failed", Confidence: 0.85,
	Meaning: "an SSH connection to a host could not be made, or broke",
	Hint:    "try it by hand: ssh HOST true; see that the host is up and that its key is known",
	Needles: []string{"ssh: connect to host", "host key verification failed", "connection closed by remote host", "kex_exchange_identification", "client_loop: send disconnect", "remote host identification has changed"},
	Match:   textmatch.New(`ssh: connect to host (?P<host>\S+) port \d+: Connection refused|[Hh]ost key verification failed|kex_exchange_identification|client_loop: send disconnect|IDENTIFICATION HAS CHANGED`),
}, {
	Category: job.NetworkError, Signature: "socket-timeout", Confidence: 0.85,
	Meaning: "a server did not answer in time",
	Hint:    "see whether the server runs and can be reached from this host",
	Classes: []string{"TimeoutError"},
	Match:   textmatch.New(`^TimeoutError: (?:timed out$|The read operation timed out)`),
}, {
	Category: job.NetworkError, Signature: "download-failed", Confidence: 0.7, Traits: rule.Weak,
	Meaning: "curl, wget, git, rsync or pip could not reach a server",
	Hint:    "see whether the server can be reached from this host: compute nodes often have no way out",
	Needles: []string{"curl: (", "failed to connect to", "unable to access '", "rsync error:", "could not resolve", "failed: connection", "wget: ", "fatal: unable to", "ssh_exchange", "could not read from remote repository"},
	Match:   textmatch.New(`curl: \((?:5|6|7|18|28|35|5[1-8]|60|77)\)|[Ff]ailed to connect to|unable to access '.*(?:resolve|connect|timed out)|rsync error: .*(?:socket|timeout|connection|code 12|code 30)|wget: unable to|failed: Connection (?:refused|timed out)|Could not read from remote repository`),
	Unless:  textmatch.New(`^\[W|socket\.cpp:\d+\]|(?i)\bretrying\b`),
}, {
	Category: job.NetworkError, Signature: "nccl-network", Confidence: 0.8, Traits: rule.Peer,
	Hint:    "check the port (ibstat), its cable and the fabric; NCCL_SOCKET_IFNAME and NCCL_IB_HCA choose other interfaces",
	Needles: []string{"net/ofi ", "fi_cq_readerr", "completed with error", "ofi poll failed"},
	Match:   textmatch.New(`NET/OFI .*(?:completed with error|failed|fi_cq_readerr)|fi_cq_readerr|OFI poll failed`),
}, {
	Category: job.NetworkError, Signature: "nccl-network", Confidence: 0.6, Traits: rule.Cascade,
	Hint:    peerHint + "; NCCL_DEBUG=INFO shows which interface NCCL uses, and NCCL_SOCKET_IFNAME sets it",
	Needles: []string{"socketstartconnect: connect to", "socketfinalizeaccept: wrong", "socketfinalizeconnect:", "socketpollconnect", "socketprogressopt", "[service thread] accept failed", "[service thread] could not receive", "failed to execute operation connect", "socket recv failed while polling", "socket-based communication failed", "bootstrapcheckin", "unex_remote"},
	Match:   textmatch.New(`NCCL WARN .*(?:socketStartConnect: Connect to \S+ failed|socketFinalize(?:Accept: wrong|Connect)|socketPollConnect|socketProgressOpt|Accept failed|Could not receive|Failed to execute operation|Socket recv failed)`),
	Find:    textmatch.New(`(?:to|peer) (?P<artefact>[\w.-]+<\d+>)`),
}, {
	Category: job.NetworkError, Signature: "http", Confidence: 0.8,
	Hint:    "fetch models and data beforehand and use them offline (HF_HUB_OFFLINE=1), or set the proxy on every host",
	Classes: []string{"*", rule.Message},
	Needles: []string{"connect to the endpoint url", "on endpoint url", "connect to http", "reach http", "cannot reach ", "could not reach ", "unable to reach ", "failed to reach ", "connecting to http", "connection to http", "network error", "couldn't reach ", "503 service", "502 bad", "504 gateway", "500 internal"},
	Match:   textmatch.New(`(?i)connect to the endpoint url|time-?out on endpoint url|\b50[0234] (?:service unavailable|bad gateway|gateway time-?out|internal server error)|(?:fail\w*|not|n't|unable|error|timed out|lost).{0,60}(?:connect(?:ion|ing)?(?: to)?|reach)(?: [\w-]+){0,4} https?://|\bnetwork error\b|couldn't reach \S+ on the hub`),
	Find:    textmatch.New(`https?://(?P<artefact>[\w.-]+)`),
}, {
	Category: job.NetworkError, Signature: "connect-failed", Confidence: 0.75, Traits: rule.Peer,
	Meaning: "the program could not connect to a server or another process",
	Hint:    "see whether ${artefact|what it connects to} runs, and whether it can be reached from this host",
	Classes: []string{"*", rule.Message},
	Needles: []string{"not connect", "to connect", "can't connect", "couldn't connect", "connection to server", "connect timeout", "connection timeout", "connection failed", "connection error", "no response from", "no reply from", "stream is closed", "connection lost", "failed to reach", "could not reach", "cannot reach", "unable to reach", "contact server", "too many clients", "too many connections", "gone away", "statuscode.unavailable"},
	Match:   textmatch.New(`(?i)(?:could not|couldn't|cannot|can not|can't|unable to|failed to|failure to|trying to|did not|attempt\w* to) (?:re-?)?(?:connect|reach)(?: to| on| with)? (?:\S+ ){0,4}?(?:\S+://\S+|\S+:\d{2,5}\b|server|host|scheduler|master|head|gcs|coordinator|database|db|redis|broker|store|controller|daemon|port|remote|the \w+)|connection to server (?:at|on|closed)|connect(?:ion)? time-?out|too many (?:clients|connections)|server has gone away|StatusCode\.UNAVAILABLE|no (?:response|reply) from (?:the )?(?:server|master|host|\S+://)|stream is closed`),
	Find:    textmatch.New(`(?P<artefact>\w+://[\w.\-:]+|[\w.-]+:\d{2,5}\b)`),
	Unless:  textmatch.New(`(?i)clients joined|\bssh\b|x11|display|fabric manager|docker daemon|containerd|licen[cs]e|nvidia driver|connected component|password|authenticat|permission|denied|https?://|endpoint url|socket file|\.sock\b`),
}, {
	Category: job.NetworkError, Signature: "http", Confidence: 0.85,
	Hint: "fetch models and data beforehand and use them offline (HF_HUB_OFFLINE=1), or set the proxy on every host",
	Classes: []string{"CommClosedError", "ServerSelectionTimeoutError", "AutoReconnect", "NoBrokersAvailable", "KafkaTimeoutError", "KafkaConnectionError", "AMQPConnectionError", "HfHubHTTPError", "PoolTimeout", "WriteTimeout", "ClientPayloadError", "ClientOSError", "ContentTooShortError", "SSLCertVerificationError", "SSLEOFError", "SSLZeroReturnError",
		"ServiceUnavailable", "GatewayTimeout", "TooManyRequests", "ServiceRequestError", "ServiceResponseError", "IncompleteRead", "RemoteDisconnected", "BadStatusLine", "herror", "NoValidConnectionsError", "SSHException", "APITimeoutError", "TTransportException", "HTTPStatusError", "BadGateway", "InternalServerError", "RateLimitError", "_InactiveRpcError", "AioRpcError", "RpcError", "WebSocketConnectionClosedException", "ConnectionClosed", "TransportServerError", "TransportQueryError", "EndpointConnectionError", "ClientConnectorDNSError", "ConnectionTimeoutError", "ClientConnectorSSLError", "ClientConnectorCertificateError", "ServiceUnavailableError", "ConnectionInterrupted", "ConnectionDoesNotExistError"},
}, {
	Category: job.NetworkError, Signature: "http", Confidence: 0.85,
	Hint:    "fetch models and data beforehand and use them offline (HF_HUB_OFFLINE=1), or set the proxy on every host",
	Classes: []string{"*", rule.Message},
	Needles: []string{"bad gateway", "service unavailable", "gateway time", "too many requests", "certificate has expired", "certificate is not yet valid", "certificate verify failed", "local issuer certificate", "self-signed certificate", "self signed certificate", "tls handshake", "ssl handshake", "unexpected eof while reading"},
	Match:   textmatch.New(`(?i)\b50[234]\b|\b429\b|certificate|(?:tls|ssl) handshake|bad gateway|gateway time-?out|service unavailable|too many requests`),
}, {
	Category: job.NetworkError, Signature: "socket-timeout", Confidence: 0.8,
	Hint:    "see whether the server runs and can be reached from this host",
	Classes: []string{"Again"},
}, {
	Category: job.NetworkError, Signature: "database-unreachable", Confidence: 0.9,
	Meaning: "a database server could not be reached, or takes no more connections",
	Hint:    "see whether the server runs, can be reached from this host, and how many connections it allows",
	Classes: []string{"OperationalError", "InterfaceError", "DatabaseError"},
	Needles: []string{"connection to server at", "could not connect", "can't connect to", "too many clients", "too many connections", "server closed the connection", "lost connection to", "server has gone away", "could not translate host name", "timeout expired"},
	Find:    textmatch.New(`(?:at|on|to) ['"](?P<artefact>[\w.-]+)['"]`),
	Unless:  textmatch.New(`(?i)password|authentication|no pg_hba|role ".*" does not exist|database ".*" does not exist`),
}, {
	Category: job.NetworkError, Signature: "nccl-remote-error", Confidence: 0.5, Traits: rule.Cascade | rule.Generic,
	Hint:    peerHint + "; NCCL_DEBUG=INFO shows which interface NCCL uses, and NCCL_SOCKET_IFNAME sets it",
	Classes: []string{"c10::DistBackendError", "c10::DistNetworkError", "c10::DistStoreError", "c10::DistError", "DistNetworkError", "DistStoreError", "DistError"},
}, {
	Category: job.NetworkError, Signature: "peer-closed", Confidence: 0.6, Traits: rule.Cascade,
	Hint:    peerHint,
	Classes: []string{"ConnectionError", "RuntimeError", "Exception", "OSError", "IOError", "EOFError", "CommunicationError", "std::runtime_error", "go panic", "rust panic"},
	Needles: []string{"closed the connection", "connection to rank", "connection to peer", "lost connection", "connection lost", "lost peer", "peer died", "peer is gone", "peer disconnected", "peer has gone", "rank disconnected", "lost rank", "lost contact with rank", "socket closed", "end of file from rank", "eof from rank", "eof from peer"},
	Find:    textmatch.New(`(?:with|from|to|by|peer) (?:rank )?(?P<artefact>[\w.-]+:\d{2,5})`),
}, {
	Category: job.NetworkError, Signature: "download-failed", Confidence: 0.8,
	Hint:    "see whether the server can be reached from this host: compute nodes often have no way out",
	Classes: []string{rule.Message},
	Needles: []string{"curl: (", "rsync error:", "rsync: ", "wget: ", "fatal: unable to access", "could not read from remote repository", "download failed", "failed to download", "cannot download", "could not download", "unable to download", "failed to fetch", "could not fetch", "unable to fetch"},
	Match:   textmatch.New(`curl: \((?:5|6|7|18|28|35|52|55|56|60)\)|rsync error: .*(?:socket|timeout|connection|code (?:10|12|30|35))|rsync: .*(?:connection|timed? ?out)|wget: (?:unable|can't connect|bad address)|unable to access '.*(?:resolve|connect|timed out|SSL)|Could not read from remote repository|(?i)(?:download failed|(?:failed to|cannot|could not|unable to) (?:download|fetch)).*(?:time|connect|resolve|network|reach|50\d|refused|reset|ssl)`),
}}
