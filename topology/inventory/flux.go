package inventory

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
)

const fluxHint = "run the command to see what is wrong; or unset FLUX_JOB_ID and FLUX_URI, or give --hosts"

// flux reads the hosts of the Flux job to which this process belongs as a task. In a script of flux batch or a
// shell of flux alloc, it reads the hosts of the Flux instance. An instance of another user is that of the
// whole cluster, and so is no allocation.
func (e environment) flux() (List, error) {
	command := []string{"resource", "R"}
	if id := e.get("FLUX_JOB_ID"); id != "" {
		if size := e.get("FLUX_JOB_SIZE"); size != "" && size != "1" {
			return List{}, one("FLUX_JOB_SIZE", 0, faultf("start gangrun once, in flux batch or flux alloc; it starts the ranks itself", "is %s: gangrun is one of several tasks of a Flux job", quote(size)))
		}
		command = []string{"job", "info", id, "R"}
	} else {
		owner, err := e.fluxSays("getattr", "security.owner")
		if err != nil {
			return List{}, err
		}
		if strings.TrimSpace(string(owner)) != strconv.Itoa(os.Getuid()) {
			return List{}, nil
		}
	}
	text, err := e.fluxSays(command...)
	if err != nil {
		return List{}, err
	}
	return fluxR("flux "+strings.Join(command, " "), text)
}

// fluxSays runs a command of flux and returns its output.
func (e environment) fluxSays(args ...string) ([]byte, error) {
	text, err := e.run("flux", args...)
	if err != nil {
		return nil, one("flux "+strings.Join(args, " "), 0, faultf(fluxHint, "does not say which hosts the job has: %s", short(firstLine(err))))
	}
	return text, nil
}

// fluxResources has the parts of R that are read. R is Flux's list of the resources of a job (RFC 20).
type fluxResources struct {
	Version   int `json:"version"`
	Execution struct {
		RLite []struct {
			Rank     string            `json:"rank"`
			Children map[string]string `json:"children"`
		} `json:"R_lite"`
		Nodelist []string `json:"nodelist"`
	} `json:"execution"`
}

// fluxR reads R. The hosts in its nodelist are in the order of the ranks. The slots of a host are its cores,
// because the user has not stated a number of ranks.
func fluxR(source string, text []byte) (List, error) {
	c := collect(source, Flux)
	var r fluxResources
	if err := json.Unmarshal(text, &r); err != nil {
		return List{}, one(source, 0, faultf(fluxHint, "is no list of resources: %s", short(firstLine(err))))
	}
	if r.Version != 1 {
		return List{}, one(source, 0, faultf(fluxHint, "is in version %d of the format, not in 1", r.Version))
	}
	var cores []int
	for _, part := range r.Execution.RLite {
		ranks, err := idset(part.Rank)
		n := 0
		if err == nil && part.Children["core"] != "" {
			n, err = idset(part.Children["core"])
		}
		if err == nil && len(cores)+ranks > MaxHosts {
			err = fmt.Errorf("there are more than %d hosts", MaxHosts)
		}
		if err != nil {
			return List{}, one(source, 0, faultf(fluxHint, "%v", err))
		}
		for range ranks {
			cores = append(cores, n)
		}
	}
	names, bad := expand(strings.Join(r.Execution.Nodelist, ","), MaxHosts)
	if bad == nil && len(names) != len(cores) {
		bad = faultf("", "has %d names for %d hosts", len(names), len(cores))
	}
	if bad != nil {
		return List{}, one(source, 0, &fault{bad.text, fluxHint})
	}
	for i, name := range names {
		name, bad := hostName(name)
		if bad != nil {
			c.bad(0, &fault{bad.text, fluxHint})
			continue
		}
		if h, _ := c.host(0, name); h != nil { // several brokers may be on one host
			c.count(0, h, cores[i], false)
		}
	}
	return c.cores(fluxHint)
}

// cores returns the list. The slots of a host are its cores, and are not Hard.
func (c *collector) cores(nothing string) (List, error) {
	for i := range c.list.Hosts {
		c.list.Hosts[i].Cores = c.list.Hosts[i].Slots
	}
	list, err := c.done(nothing)
	for i := range list.Hosts {
		list.Hosts[i].Slots = list.Hosts[i].Cores
	}
	return list, err
}

// idset returns how many numbers a list such as 0,2-3 has.
func idset(list string) (int, error) {
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		from, err := strconv.Atoi(first)
		to := from
		if err == nil && isRange {
			to, err = strconv.Atoi(last)
		}
		if err != nil || from < 0 || to < from || to >= MaxSlots {
			return 0, fmt.Errorf("%s is no number, and no range of them", quote(part))
		}
		n += to - from + 1
	}
	if n > MaxSlots {
		return 0, fmt.Errorf("%s has more than %d numbers", quote(list), MaxSlots)
	}
	return n, nil
}
