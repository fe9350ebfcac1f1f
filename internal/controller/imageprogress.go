package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// imageProgress shows how much of an image has been sent to hosts.
type imageProgress struct {
	say func(text string)

	mu    sync.Mutex
	shown time.Time // time of the last line
	hosts map[string]string
}

// imageEvery is the time between two lines about the transfer of an image.
const imageEvery = 5 * time.Second

// add is called by the launcher when a host has received sent bytes of the image. of is the size of the image, or 0 if
// the size is not known.
func (p *imageProgress) add(host string, sent, of int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hosts == nil {
		p.hosts, p.shown = map[string]string{}, time.Now()
		p.say(fmt.Sprintf("sending the image%s to the hosts that lack it; they unpack it then", inMiB(" of %d MiB", of)))
	}
	p.hosts[host] = fmt.Sprintf("%s %d%s MiB", host, sent>>20, inMiB(" of %d", of))
	if time.Since(p.shown) >= imageEvery {
		p.shown = time.Now()
		p.say("the image: " + strings.Join(slices.Sorted(maps.Values(p.hosts)), ", "))
	}
}

// inMiB formats a size. It returns "" if the size is not known.
func inMiB(format string, bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf(format, max(1, bytes>>20))
}
