package sshclient

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/remote/sshtest"
	"github.com/gangrun/gangrun/internal/testport"
)

func TestProxyJump(t *testing.T) {
	s := sshtest.New(t)
	s.Authorize(s.NewKey(".ssh/id_ed25519", "ed25519", ""))
	outer, gate := s.Start("outer").Known().Named(), s.Start("gate").Known().Named("ProxyJump outer")
	var names []string
	for i := range 3 {
		name := fmt.Sprintf("n%d", i)
		s.Start(name).Known().Named("ProxyJump gate")
		names = append(names, name)
	}
	d := dialer(s)
	d.Limit = 1
	var all sync.WaitGroup
	clients := make([]*Client, len(names))
	for i, name := range names {
		all.Go(func() {
			c, err := d.Dial(t.Context(), name)
			if err != nil {
				t.Error(err)
				return
			}
			clients[i] = c
			if got := output(t, c, "echo "+name); got != name+"\n" {
				t.Errorf("%s says %q", name, got)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for _, jump := range []*sshtest.Server{outer, gate} {
		n := 0
		for limit := time.Now().Add(sshtest.Longest); n == 0 && time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
			n = strings.Count(jump.Said(), "Accepted publickey") // sshd may log this after the login has succeeded
		}
		if n != 1 {
			t.Errorf("%d logins on %s, which all share", n, jump.Name)
		}
	}
	for _, c := range clients {
		c.Close()
	}
	if len(d.jumps) != 0 {
		t.Errorf("%d jumps are left", len(d.jumps))
	}
	again := dial(t, d, "n0")
	again.Close()
}

func TestProxyJumpErrors(t *testing.T) {
	s := sshtest.New(t)
	s.Authorize(s.NewKey(".ssh/id_ed25519", "ed25519", ""))
	gate := s.Start("gate").Named()
	port := testport.Refusing(t)
	s.Add(".ssh/config", fmt.Sprintf("Host n1\n HostName 127.0.0.1\n Port %d\n ProxyJump gate\n", port))
	s.Add(".ssh/config", "Host a\n ProxyJump b\nHost b\n ProxyJump a\n")
	d := dialer(s)
	_, err := d.Dial(t.Context(), "n1")
	var wrong *HostKeyError
	if !errors.As(err, &wrong) || wrong.Name != "gate" {
		t.Errorf("an unknown jump host: %T: %v", err, err)
	}
	gate.Known()
	_, err = d.Dial(t.Context(), "n1")
	var failed *DialError
	if !errors.As(err, &failed) || failed.Reason != DialRefused || !strings.Contains(err.Error(), "through gate") {
		t.Errorf("a refused port behind a jump host: %T: %v", err, err)
	}
	if _, err = d.Dial(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "leads back") {
		t.Errorf("a ring of jump hosts: %v", err)
	}
	if len(d.jumps) != 0 {
		t.Errorf("%d jumps are left", len(d.jumps))
	}
}
