package preflight

import (
	"slices"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// different returns the Hit for hosts whose file differs from that of the others. It ignores hosts
// whose hash is not known. If more than half of the hosts have the same file, the Hit names the
// others. Otherwise it names all hosts.
func different(signature string, facts []job.Facts, file func(job.Facts) (path, hash string)) []Hit {
	hosts := make(map[string][]string) // of a hash
	var proof []job.Line
	var most string
	var all []string
	for _, f := range facts {
		path, hash := file(f)
		if hash == "" {
			continue
		}
		if hosts[hash] == nil {
			proof = append(proof, job.Line{Source: job.SourceAgent, Host: f.Host, Rank: -1, File: path, Text: "SHA-256 " + hash})
		}
		hosts[hash] = append(hosts[hash], f.Host)
		if len(hosts[hash]) > len(hosts[most]) {
			most = hash
		}
		all = append(all, f.Host)
	}
	if len(hosts) < 2 {
		return nil
	}
	path, _ := file(facts[slices.IndexFunc(facts, func(f job.Facts) bool { return f.Host == hosts[most][0] })])
	odd, rest := all, ""
	if 2*len(hosts[most]) > len(all) {
		odd = slices.DeleteFunc(all, func(h string) bool { return slices.Contains(hosts[most], h) })
		rest = " as on the other " + text.Count(len(hosts[most]), "host")
	}
	return []Hit{{Signature: signature, Hosts: odd, Path: path, Values: about(path, "rest", rest), Evidence: proof}}
}
