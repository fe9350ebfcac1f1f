package preflight

import (
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

const reachHint = "let the hosts open TCP connections to each other's ports of any number (iptables or nft list ruleset, the cloud's security group), name another network with --network, or leave a host out; if the ranks need no connection there, use --preflight off"

var reachCheck = Check{
	Code:      "reach",
	Asks:      "Can every host connect to a port of every other host, on the network over which the ranks communicate?",
	DependsOn: []string{"image"},
	Problems: []Problem{
		{"reach-host", job.SeverityError, job.NetworkError,
			"{host} ({address}) is cut off from other hosts: {ways}", reachHint},
		{"reach-pair", job.SeverityError, job.NetworkError,
			"{hosts} cannot connect to each other at {address} and {other}: {error}", reachHint},
		{"reach-one-way", job.SeverityError, job.NetworkError,
			"{from} cannot connect to {to} at {address}: {error}; {to} can connect to {from}", reachHint},
		{"reach-more", job.SeverityError, job.NetworkError,
			"{broken} of {all} connections between hosts fail, too, such as that from {from} to {to} at {address}: {error}", reachHint},
	},
	Judge: func(_ job.Spec, facts []job.Facts) []Hit {
		w := waysOf(facts)
		var hits []Hit
		for {
			// The host that lacks connections to most other hosts is probably the cause of all of these
			// problems.
			worst, peers := "", []string(nil)
			for _, f := range facts {
				if p := w.peers(facts, f.Host); len(p) > len(peers) {
					worst, peers = f.Host, p
				}
			}
			if worst == "" {
				return hits
			}
			if len(hits) == mostReach {
				return append(hits, w.more(facts))
			}
			if len(peers) == 1 {
				hits = append(hits, w.pair(worst, peers[0]))
			} else {
				hits = append(hits, w.cutOff(worst, peers))
			}
			for _, p := range peers {
				delete(w.broken, [2]string{worst, p})
				delete(w.broken, [2]string{p, worst})
			}
		}
	},
}

// mostReach is the maximum number of hosts and pairs of hosts that are reported one by one.
const mostReach = 4

// ways has the connections between hosts that failed.
type ways struct {
	broken  map[[2]string]string // the reasons, by the hosts from which and to which a connection failed
	address map[string]string    // address of each host
}

func waysOf(facts []job.Facts) ways {
	w := ways{broken: map[[2]string]string{}, address: map[string]string{}}
	known := map[string]bool{}
	for _, f := range facts {
		known[f.Host] = true
	}
	for _, f := range facts {
		for _, r := range f.Reach {
			w.address[r.To] = r.Address
			if r.Error != "" && known[r.To] {
				w.broken[[2]string{f.Host, r.To}] = r.Error
			}
		}
	}
	return w
}

// peers returns the hosts to or from which a host has no connection.
func (w ways) peers(facts []job.Facts, host string) (list []string) {
	for _, f := range facts {
		if w.broken[[2]string{host, f.Host}] != "" || w.broken[[2]string{f.Host, host}] != "" {
			list = append(list, f.Host)
		}
	}
	return list
}

// pair returns the Hit for two hosts.
func (w ways) pair(a, b string) Hit {
	there, back := w.broken[[2]string{a, b}], w.broken[[2]string{b, a}]
	if there == "" {
		a, b, there, back = b, a, back, there
	}
	if back == "" {
		return Hit{Signature: "reach-one-way", Hosts: []string{a}, Path: w.address[b], Values: map[string]string{
			"from": a, "to": b, "address": w.address[b], "error": there}}
	}
	if there != back {
		there += ", and the other way " + back
	}
	return Hit{Signature: "reach-pair", Hosts: []string{a, b}, Path: w.address[a], Values: map[string]string{
		"address": w.address[a], "other": w.address[b], "error": there}}
}

// cutOff returns the Hit for a host that has no connection to several peers.
func (w ways) cutOff(host string, peers []string) Hit {
	// These are the hosts for each error, in both directions.
	var texts []string
	for _, to := range []bool{true, false} {
		var errors []string
		of := map[string][]string{}
		for _, p := range peers {
			way := [2]string{host, p}
			if !to {
				way = [2]string{p, host}
			}
			if e := w.broken[way]; e != "" {
				if of[e] == nil {
					errors = append(errors, e)
				}
				of[e] = append(of[e], p)
			}
		}
		for _, e := range errors {
			if to {
				texts = append(texts, "it cannot connect to "+names(of[e])+": "+e)
			} else {
				texts = append(texts, names(of[e])+" cannot connect to it: "+e)
			}
		}
	}
	return Hit{Signature: "reach-host", Hosts: []string{host}, Path: w.address[host], Values: map[string]string{
		"host": host, "address": w.address[host], "ways": strings.Join(texts, "; ")}}
}

// more returns the Hit for all connections that failed.
func (w ways) more(facts []job.Facts) Hit {
	var hosts []string
	all := 0
	values := map[string]string{"broken": strconv.Itoa(len(w.broken))}
	for _, f := range facts {
		all += len(f.Reach)
		if len(w.peers(facts, f.Host)) > 0 {
			hosts = append(hosts, f.Host)
		}
		for _, r := range f.Reach {
			if e := w.broken[[2]string{f.Host, r.To}]; e != "" && values["from"] == "" {
				values["from"], values["to"], values["address"], values["error"] = f.Host, r.To, r.Address, e
			}
		}
	}
	values["all"] = strconv.Itoa(all)
	return Hit{Signature: "reach-more", Hosts: hosts, Path: values["address"], Values: values}
}
