package testhosts

import (
	"errors"
	"fmt"
	"strings"
)

// line is the state of a host's network cable, which a power-off does not change.
type line struct {
	cut       bool
	unplugged bool
	loss      int    // percent
	rate      string // "" is no limit
	blocked   []*Host
}

// change changes the state of the host's line and, if the host is on, applies it. If the host
// is off, Boot applies it.
func (h *Host) change(carryOut func() error, set func(*line)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.line
	set(&h.line)
	if !h.up() {
		return nil
	}
	err := carryOut()
	if err != nil {
		h.line = before
	}
	return err
}

// draw applies the state of the line, except a cut, to a host that has just booted.
func (h *Host) draw() error {
	var errs []error
	if h.line.unplugged {
		errs = append(errs, h.carry())
	}
	if h.line.rate != "" {
		errs = append(errs, h.shape())
	}
	if h.line.loss > 0 || len(h.line.blocked) > 0 {
		errs = append(errs, h.filter())
	}
	return errors.Join(errs...)
}

// Cut makes the host's network silent: links stay up, but no packet passes.
func (h *Host) Cut() error { return h.change(h.attach, func(l *line) { l.cut = true }) }

// Restore undoes Cut.
func (h *Host) Restore() error { return h.change(h.attach, func(l *line) { l.cut = false }) }

func (h *Host) attach() error {
	if h.line.cut {
		return h.bed.ports(h.number, "nomaster")
	}
	return h.bed.ports(h.number, "master br%d")
}

// Unplug unplugs the host's cables: its network cards lose their carrier.
func (h *Host) Unplug() error { return h.change(h.carry, func(l *line) { l.unplugged = true }) }

// Plug undoes Unplug.
func (h *Host) Plug() error { return h.change(h.carry, func(l *line) { l.unplugged = false }) }

func (h *Host) carry() error {
	if h.line.unplugged {
		return h.bed.ports(h.number, "down")
	}
	return h.bed.ports(h.number, "up")
}

// Rate limits the host's line in each direction to a rate in the form of tc(8), such as 10mbit;
// "" means no limit.
func (h *Host) Rate(rate string) error {
	return h.change(h.shape, func(l *line) { l.rate = rate })
}

func (h *Host) shape() error {
	var errs []error
	for network := range h.bed.settings.networks {
		// Each end limits what it sends.
		errs = append(errs, shape(h.init, fmt.Sprintf("eth%d", network), h.line.rate),
			shape(h.bed.fabric, port(network, h.number), h.line.rate))
	}
	return errors.Join(errs...)
}

func shape(pid int, device, rate string) error {
	if rate != "" {
		return inNet(pid, "", "tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst", "64kb", "latency", "100ms")
	}
	err := inNet(pid, "", "tc", "qdisc", "del", "dev", device, "root")
	if err != nil && strings.Contains(err.Error(), "handle of zero") { // there is no limit to remove
		return nil
	}
	return err
}

// Loss drops packets at random in each direction. percent is how many of them, from 0 to 100.
func (h *Host) Loss(percent int) error {
	if percent < 0 || percent > 100 {
		return fmt.Errorf("%d percent cannot be lost: take 0 to 100", percent)
	}
	return h.change(h.filter, func(l *line) { l.loss = percent })
}

// Block drops the packets between the host and the hosts in others. Without arguments, Block lets
// all packets pass again.
func (h *Host) Block(others ...*Host) error {
	return h.change(h.filter, func(l *line) { l.blocked = others })
}

func (h *Host) filter() error {
	chain := func(hook, interfaces, addresses string) string {
		rules := []string{interfaces + ` "lo" accept`}
		for _, other := range h.line.blocked {
			for network := range h.bed.settings.networks {
				rules = append(rules, fmt.Sprintf("%s %v drop", addresses, address(network, other.number)))
			}
		}
		switch {
		case h.line.loss == 100: // nft(8) counts from 0 to 99
			rules = append(rules, "drop")
		case h.line.loss > 0:
			rules = append(rules, fmt.Sprintf("numgen random mod 100 < %d drop", h.line.loss))
		}
		return fmt.Sprintf("chain %s { type filter hook %[1]s priority 0; %s; }\n", hook, strings.Join(rules, "; "))
	}
	// With these two lines nft(8) deletes a table that may not exist.
	return inNet(h.init, "table inet bed\ndelete table inet bed\ntable inet bed {\n"+
		chain("input", "iifname", "ip saddr")+chain("output", "oifname", "ip daddr")+"}\n", "nft", "-f", "-")
}
