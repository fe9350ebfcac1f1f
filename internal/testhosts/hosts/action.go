package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/testhosts"
)

// action is a change to a host, with a name of one word.
type action struct {
	name, arg, text string
	do              func(*testhosts.Host, string) error
}

// plain returns an action that takes no argument.
func plain(f func(*testhosts.Host) error) func(*testhosts.Host, string) error {
	return func(h *testhosts.Host, _ string) error { return f(h) }
}

var actions = []action{
	{"cut", "", "its network is silent; links stay up", plain((*testhosts.Host).Cut)},
	{"restore", "", "undo cut", plain((*testhosts.Host).Restore)},
	{"unplug", "", "its links are down", plain((*testhosts.Host).Unplug)},
	{"plug", "", "undo unplug", plain((*testhosts.Host).Plug)},
	{"rate", "RATE", "limit its line, to 10mbit for example; none: no limit", func(h *testhosts.Host, rate string) error {
		return h.Rate(strings.TrimPrefix(rate, "none"))
	}},
	{"loss", "PERCENT", "drop packets at random, in each direction", func(h *testhosts.Host, percent string) error {
		n, err := strconv.Atoi(percent)
		if err != nil {
			return fmt.Errorf("%q is no number of percent: take 0 to 100", percent)
		}
		return h.Loss(n)
	}},
	{"freeze", "", "it hangs; its kernel still answers", plain((*testhosts.Host).Freeze)},
	{"thaw", "", "undo freeze", plain((*testhosts.Host).Thaw)},
	{"kill", "", "all its processes die, and their connections end", plain((*testhosts.Host).Kill)},
	{"poweroff", "", "it loses power, and nobody hears of it", plain((*testhosts.Host).Poweroff)},
	{"boot", "", "start it again", plain((*testhosts.Host).Boot)},
	{"stop-ssh", "", "kill its sshd and the sessions", plain((*testhosts.Host).StopSSH)},
	{"start-ssh", "", "undo stop-ssh", plain((*testhosts.Host).StartSSH)},
	{"kill-containerd", "", "kill its containerd; containers go on", plain((*testhosts.Host).KillContainerd)},
	{"start-containerd", "", "undo kill-containerd", plain((*testhosts.Host).StartContainerd)},
	{"kill-shims", "", "kill the parents of its containers", plain((*testhosts.Host).KillShims)},
	{"fill", "DIR", "leave no room in /tmp, /home, /root, /run or /dev/shm", (*testhosts.Host).Fill},
	{"drain", "DIR", "undo fill", (*testhosts.Host).Drain},
}

func usage() string {
	var lines strings.Builder
	fmt.Fprintf(&lines, "usage: %s ACTION HOST [ARGUMENT]\n", bedName)
	for _, a := range actions {
		fmt.Fprintf(&lines, "  %-21s %s\n", strings.TrimSpace(a.name+" HOST "+a.arg), a.text)
	}
	return lines.String()
}

// act carries out an action on one of the hosts. Without words it returns the list of actions.
func (s *server) act(words []string) (string, error) {
	if len(words) == 0 {
		return usage(), nil
	}
	i := slices.IndexFunc(actions, func(a action) bool { return a.name == words[0] })
	if i < 0 {
		return "", fmt.Errorf("there is no action %q: run %s without words to see them", words[0], bedName)
	}
	a, want := actions[i], 2
	if a.arg != "" {
		want = 3
	}
	if len(words) != want {
		return "", fmt.Errorf("%d words are too many or too few: it is %s", len(words), strings.TrimSpace(bedName+" "+a.name+" HOST "+a.arg))
	}
	for _, h := range s.bed.Hosts() {
		if h.Name() != words[1] {
			continue
		}
		err := a.do(h, strings.Join(words[2:], ""))
		if err == nil && a.name == "boot" && s.slurm != nil {
			err = s.slurm.StartNode(h)
		}
		return "", err
	}
	return "", fmt.Errorf("there is no host %q: take h1 to h%d", words[1], len(s.bed.Hosts()))
}
