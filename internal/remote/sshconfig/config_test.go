package sshconfig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/remote/sshtest"
)

// config returns the SSH configuration of the user of a site.
func config(s *sshtest.Site) Config {
	return Config{
		UserFile:   s.Path(".ssh/config"),
		KnownHosts: []string{s.Path(".ssh/known_hosts")},
		User:       s.User,
		UID:        os.Getuid(),
		Home:       s.Dir,
		Hostname:   "controller.example.org",
		Getenv:     func(string) string { return "" },
	}
}

// resolve resolves host with text as the user's ssh_config.
func resolve(t *testing.T, text, host string) (Endpoint, []string, error) {
	t.Helper()
	s := sshtest.New(t)
	s.Write(".ssh/config", text)
	c := config(s)
	c.Home, c.User, c.UID = s.Dir, "alice", os.Getuid()
	c.Getenv = func(name string) string {
		return map[string]string{"KEYS": "/keys", "SSH_AUTH_SOCK": "/env.sock", "OTHER": "/other.sock"}[name]
	}
	c.AgentSocket = "/default.sock"
	e, notes, err := c.Resolve(host)
	for _, list := range [][]string{e.Login.Identities, e.HostKeys.Files, e.Login.Certificates} {
		for i := range list {
			list[i] = strings.ReplaceAll(list[i], s.Dir, "~")
		}
	}
	return e, notes, err
}

func TestResolve(t *testing.T) {
	for _, test := range []struct {
		name, config, host string
		want               func(Endpoint) any
		is                 any
	}{
		{"nothing", "", "n1", func(e Endpoint) any {
			return fmt.Sprintln(e.Name, e.Host, e.Port, e.User, e.Network, e.ConnectTimeout, e.Login.Agent, e.Jumps)
		}, "n1 n1 22 alice tcp 10s /default.sock []\n"},
		{"target", "User bob\nPort 1\n", "carol@n1:2222", func(e Endpoint) any { return fmt.Sprint(e.User, " ", e.Port) }, "carol 2222"},
		{"first wins", "Host n*\nUser bob\nHost *\nUser carol\nPort 5\n", "n1", func(e Endpoint) any { return fmt.Sprint(e.User, " ", e.Port) }, "bob 5"},
		{"negated", "Host * !n1\nUser bob\n", "n1", func(e Endpoint) any { return e.User }, "alice"},
		{"question mark is one", "Host n?\nUser bob\n", "n", func(e Endpoint) any { return e.User }, "alice"},
		{"hostname token", "Host n1\nHostName %h.example.org\n", "n1", func(e Endpoint) any { return e.Host }, "n1.example.org"},
		{"equals and quotes", "Host = n1\n\tUser=\"bob\"\n  Port = 7 # why\n", "n1", func(e Endpoint) any { return fmt.Sprint(e.User, " ", e.Port) }, "bob 7"},
		{"tabs between patterns", "Host\tn1\tn2\nUser bob\n", "n2", func(e Endpoint) any { return e.User }, "bob"},
		{"windows line ends", "Host n1\r\n  User bob\r\n", "n1", func(e Endpoint) any { return e.User }, "bob"},
		{"identities", "IdentityFile ~/.ssh/a\nHost n1\nIdentityFile ~/.ssh/%r@%n:%p\nIdentityFile ${KEYS}/%u%%\n", "n1",
			func(e Endpoint) any { return strings.Join(e.Login.Identities, " ") }, "~/.ssh/a ~/.ssh/alice@n1:22 /keys/alice%"},
		{"identity with a blank", "IdentityFile \"~/my keys/a\"\n", "n1", func(e Endpoint) any { return e.Login.Identities[0] }, "~/my keys/a"},
		{"agent none", "IdentityAgent none\n", "n1", func(e Endpoint) any { return e.Login.Agent }, ""},
		{"agent of the environment", "IdentityAgent SSH_AUTH_SOCK\n", "n1", func(e Endpoint) any { return e.Login.Agent }, "/env.sock"},
		{"agent by variable", "IdentityAgent $OTHER\n", "n1", func(e Endpoint) any { return e.Login.Agent }, "/other.sock"},
		{"jumps", "Host n1\nProxyJump bob@gw:2200,%r@gw2\n", "n1", func(e Endpoint) any { return strings.Join(e.Jumps, " ") }, "bob@gw:2200 alice@gw2"},
		{"jump none", "Host n1\nProxyJump none\nHost *\nProxyJump gw\n", "n1", func(e Endpoint) any { return len(e.Jumps) }, 0},
		{"command none first", "Host n1\nProxyCommand none\nHost *\nProxyJump gw\n", "n1", func(e Endpoint) any { return len(e.Jumps) }, 0},
		{"command none second", "Host n1\nProxyJump gw\nHost *\nProxyCommand none\n", "n1", func(e Endpoint) any { return len(e.Jumps) }, 1},
		{"known hosts", "UserKnownHostsFile ~/a ~/b\nGlobalKnownHostsFile none\nHostKeyAlias Cluster\n", "n1",
			func(e Endpoint) any { return strings.Join(append(e.HostKeys.Files, e.HostKeys.Alias), " ") }, "~/a ~/b cluster"},
		{"timeout", "ConnectTimeout 1m30s\n", "n1", func(e Endpoint) any { return e.ConnectTimeout }, 90 * time.Second},
		{"match host", "HostName 10.0.0.1\nMatch host 10.0.0.*,x\nUser bob\n", "n1", func(e Endpoint) any { return e.User }, "bob"},
		{"match originalhost", "HostName x\nMatch originalhost n1 !user bob\nPort 9\n", "n1", func(e Endpoint) any { return e.Port }, 9},
		{"match user", "Match user bob\nPort 9\n", "bob@n1", func(e Endpoint) any { return e.Port }, 9},
		{"match localuser", "Match localuser alice all\nPort 9\n", "bob@n1", func(e Endpoint) any { return e.Port }, 9},
		{"match final", "Match final host x\nPort 9\nHost n1\nHostName x\n", "n1", func(e Endpoint) any { return e.Port }, 9},
		{"match exec is not run", "Match originalhost n1 exec \"touch /x\"\nPort 9\n", "n1", func(e Endpoint) any { return e.Port }, 22},
		{"match exec with an equals sign", "Match exec \"test %h = n2\"\nPort 9\nMatch all\nUser bob\n", "n1", func(e Endpoint) any { return fmt.Sprint(e.User, " ", e.Port) }, "bob 22"},
		{"match with equals signs", "Match host=n1 user = alice localuser =alice originalhost= n1\nPort 9\n", "n1", func(e Endpoint) any { return e.Port }, 9},
		{"match a value with an equals sign", "Match user \"a=b\" host n1\nPort 9\n", "n1", func(e Endpoint) any { return e.Port }, 22},
		{"algorithms", "HostKeyAlgorithms ssh-ed25519,none-such\nCiphers -*cbc,*ctr\n", "n1",
			func(e Endpoint) any {
				return fmt.Sprint(e.Algorithms.HostKeys, slices.Contains(e.Algorithms.Ciphers, "aes128-ctr"), len(e.Algorithms.Ciphers) > 0)
			}, "[ssh-ed25519] false true"},
		{"address family", "AddressFamily inet6\n", "::1", func(e Endpoint) any { return e.Network + e.Host }, "tcp6::1"},
		{"unknown keywords", "IgnoreUnknown Foo\nFoo bar\nUseKeychain yes\nUser bob\n", "n1", func(e Endpoint) any { return e.User }, "bob"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, _, err := resolve(t, test.config, test.host)
			if err != nil {
				t.Fatal(err)
			}
			if got := test.want(e); got != test.is {
				t.Errorf("got %v, want %v", got, test.is)
			}
		})
	}
}

func TestResolveErrors(t *testing.T) {
	for _, test := range []struct{ name, config, host, want string }{
		{"proxy command", "Host n1\nProxyCommand nc %h %p\n", "n1", `config:2: ProxyCommand "nc %h %p": gangrun runs no command to reach a host`},
		{"command before jump", "ProxyCommand nc %h %p\nProxyJump gw\n", "n1", "ProxyCommand"},
		{"port", "Port ssh\n", "n1", `Port "ssh" is not a port`},
		{"quote", "User \"bob\n", "n1", "no closing quote"},
		{"no value", "User\n", "n1", "user has no value"},
		{"token", "IdentityFile %z\n", "n1", "%z means nothing here"},
		{"environment", "IdentityFile ${NOT}/x\n", "n1", "the environment has no NOT"},
		{"option as host", "", "-oProxyCommand=x", "does not begin with a dash"},
		{"shell in host", "", "n1;rm", `no ';' in it`},
		{"shell in user", "", "a`b`@n1", "no '`' in it"},
		{"no host", "", "bob@", "it has no name"},
		{"bad port", "", "n1:99999", "not a port"},
		{"hostname", "HostName $(x)\n", "n1", "HostName"},
		{"ciphers", "Ciphers none\n", "n1", "leaves none"},
		{"match without a pattern", "Match host =\n", "n1", "Match host has no argument"},
		{"match word", "Match planet mars\n", "n1", `Match knows no "planet"`},
		{"yes or no", "IdentitiesOnly maybe\n", "n1", "identitiesonly"},
		{"user of nobody", "IdentityFile ~no-such-user/x\n", "n1", `no user "no-such-user"`},
		{"time", "ConnectTimeout soon\n", "n1", "not a time"},
		{"jump", "ProxyJump -x\n", "n1", "ProxyJump"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := resolve(t, test.config, test.host)
			var wrong *Error
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), test.want) || wrong.Hint() == "" {
				t.Errorf("got %v, want an *Error with %q and a hint", err, test.want)
			}
		})
	}
}

func TestResolveNotes(t *testing.T) {
	for _, test := range []struct{ config, want string }{
		{"StrictHostKeyChecking no\n", "connects only to hosts whose key is in known_hosts"},
		{"Match exec true\nUser x\n", "Match exec"},
		{"Match exec \"test %h = n1\"\nUser x\n", "Match exec"},
		{"Match exec=\"test %h = n1\"\nUser x\n", "Match exec"},
		{"GSSAPIAuthentication yes\n", "keys, certificates and ssh-agent only"},
		{"PKCS11Provider /x.so\n", "pkcs11provider"},
		{"VerifyHostKeyDNS yes\n", "DNS"},
		{"CanonicalizeHostname yes\n", "does not change the names of hosts"},
		{"KnownHostsCommand /bin/x %H\n", "runs no command"},
		{"RemoteCommand tmux\n", "its own command"},
	} {
		_, notes, err := resolve(t, test.config, "n1")
		if err != nil || len(notes) != 1 || !strings.Contains(notes[0], test.want) || !strings.Contains(notes[0], "/config:1:") {
			t.Errorf("%q: notes %q, error %v", test.config, notes, err)
		}
	}
	if _, notes, _ := resolve(t, "StrictHostKeyChecking yes\nGSSAPIAuthentication no\nHost other\nVerifyHostKeyDNS yes\n", "n1"); len(notes) != 0 {
		t.Errorf("notes without need: %q", notes)
	}
}

func TestInclude(t *testing.T) {
	s := sshtest.New(t)
	s.Write(".ssh/config", "Host n1\n Include conf.d/*.conf none.conf\nHost *\n Include ~/always\n")
	s.Write(".ssh/conf.d/a.conf", "User bob\nHost elsewhere\nPort 1\n")
	s.Write(".ssh/conf.d/b.conf", "Port 2\n")
	s.Write("always", "User carol\nPort 3\n")
	s.Write("etc/ssh_config", "Include more.conf\nGSSAPIAuthentication yes\n")
	s.Write("etc/more.conf", "ConnectTimeout 4\n")
	c := config(s)
	c.SystemFile = s.Path("etc/ssh_config")
	for host, want := range map[string]string{"n1": "bob 2 4s", "n2": "carol 3 4s"} {
		e, notes, err := c.Resolve(host)
		if err != nil || len(notes) != 0 {
			t.Fatal(notes, err)
		}
		if got := fmt.Sprint(e.User, " ", e.Port, " ", e.ConnectTimeout); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
		if !slices.Equal(e.Login.Unsupported, []string{"gssapiauthentication"}) {
			t.Errorf("%s: unable %q", host, e.Login.Unsupported)
		}
	}
	s.Write("always", "Include ~/always\n")
	if _, _, err := c.Resolve("n1"); err == nil || !strings.Contains(err.Error(), "too deep") {
		t.Errorf("a file that includes itself: %v", err)
	}
	s.Write("always", "")
	if err := os.Chmod(s.Path("always"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Resolve("n1"); err == nil || !strings.Contains(err.Error(), "let others write it") {
		t.Errorf("a file that anybody can write: %v", err)
	}
}

// TestResolveAsOpenSSH compares the result with that of ssh for the same file.
func TestResolveAsOpenSSH(t *testing.T) {
	const files = `
Host plain
Host quoted
  User "bob"
  IdentityFile "/k/a b"
  IdentityFile /k/x\ y
Host n? *.example.org !bad.example.org
  Port 2201
  User=carol
Host alias
	HostName = real-%h.example.org
	HostKeyAlias The-Alias
	ConnectTimeout 90
Host jumpy
 ProxyJump a@b:2202,c
 IdentitiesOnly yes # and why
Match host real-*.example.org
 Port 2203
 CertificateFile /k/%h-%r-%p.pub
Match originalhost alias !host other
 IdentityFile /k/%n
Match user carol
 UserKnownHostsFile /k/one /k/two
Match user bob,x host quoted
 Port 2204
Match exec "test %h = nowhere"
 Port 2
Match host="plain" exec="test a = b"
 Port 3
Match user = "dora" originalhost= plain host =plain
 Port 2205
Match final host real-*
 IdentityFile /k/final
Match !all
 Port 1
Match all
 IdentityFile /k/last%%
Host *
 User dave
 AddressFamily inet
 GlobalKnownHostsFile /g/one
`
	s := sshtest.New(t)
	path := s.Write("config", files)
	for _, host := range []string{"plain", "quoted", "n1", "n12", "x.example.org", "bad.example.org", "alias", "jumpy", "carol@plain", "dora@plain", "bob@quoted", "bob@alias"} {
		c := config(s)
		c.UserFile = path
		c.Hostname = strings.TrimSpace(s.Tool("hostname"))
		e, _, err := c.Resolve(host)
		if err != nil {
			t.Errorf("%s: %v", host, err)
			continue
		}
		out, err := exec.Command("ssh", "-G", "-F", path, host).Output()
		if err != nil {
			t.Fatal(err)
		}
		theirs := map[string][]string{}
		for line := range strings.Lines(string(out)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			theirs[key] = append(theirs[key], value)
		}
		expand := func(paths []string) (all []string) { // ssh -G does not expand most tokens
			for _, p := range paths {
				p, err := c.path(e, p)
				if err != nil {
					t.Error(err)
				}
				all = append(all, p)
			}
			return all
		}
		ours := map[string][]string{
			"hostname": {e.Host}, "port": {fmt.Sprint(e.Port)}, "user": {e.User}, "addressfamily": {"inet"},
			"userknownhostsfile": {strings.Join(e.HostKeys.Files[:len(e.HostKeys.Files)-1], " ")},
			"connecttimeout":     {fmt.Sprint(int(e.ConnectTimeout.Seconds()))},
			"identitiesonly":     {map[bool]string{true: "yes", false: "no"}[e.Login.IdentitiesOnly]},
			"identityfile":       e.Login.Identities, "certificatefile": e.Login.Certificates,
		}
		if e.HostKeys.Alias != "" {
			ours["hostkeyalias"] = []string{e.HostKeys.Alias}
			theirs["hostkeyalias"][0] = strings.ToLower(theirs["hostkeyalias"][0])
		}
		if len(e.Jumps) > 0 {
			ours["proxyjump"] = []string{strings.Join(e.Jumps, ",")}
		}
		theirs["identityfile"], theirs["certificatefile"] = expand(theirs["identityfile"]), expand(theirs["certificatefile"])
		if theirs["connecttimeout"][0] == "none" {
			theirs["connecttimeout"] = []string{"10"}
		}
		if strings.Contains(theirs["userknownhostsfile"][0], "/.ssh/") { // the default of ssh
			theirs["userknownhostsfile"] = []string{filepath.Join(s.Dir, ".ssh/known_hosts")}
		}
		for key, value := range ours {
			if !slices.Equal(value, theirs[key]) {
				t.Errorf("%s: %s %q, ssh says %q", host, key, value, theirs[key])
			}
		}
		if len(e.Jumps) == 0 && theirs["proxyjump"] != nil {
			t.Errorf("%s: no jump, ssh says %q", host, theirs["proxyjump"])
		}
	}
}

func FuzzSplitArgs(f *testing.F) {
	for _, s := range []string{"", "a b", `"a b" c`, `a\ b`, `'x"y'`, `"`, "a #b", "a#b", `\`, "\t x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		words, err := splitArgs(s)
		if err != nil {
			return
		}
		var quoted []string
		for _, w := range words {
			quoted = append(quoted, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(w)+`"`)
		}
		again, err := splitArgs(strings.Join(quoted, " "))
		if err != nil || !slices.Equal(again, words) {
			t.Fatalf("%q reads as %q, quoted as %q (%v)", s, words, again, err)
		}
	})
}

func FuzzResolve(f *testing.F) {
	f.Add("Host *\nUser %r\n", "u@h:1")
	f.Add("Match final host x exec y\nInclude nothing\n", "[::1]:22")
	f.Add("Match host=h user = u exec \"test %h = h\"\nPort 2\nMatch host =\n", "u@h")
	f.Add("ProxyJump a,b\nHostKeyAlgorithms +ssh-*\nConnectTimeout 1w\n", "ssh://h/")
	f.Add("IdentityFile ~/${X}%C\nCiphers ^*\n=x\n", "h")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text, host string) {
		path := filepath.Join(dir, "config")
		if strings.Contains(strings.ToLower(text), "include") { // the text could include files of this machine
			return
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := Config{UserFile: path, User: "alice", UID: os.Getuid(), Home: dir, Hostname: "here"}
		e, _, err := c.Resolve(host)
		if err != nil {
			if !errors.As(err, new(*Error)) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if e.Port < 1 || e.Port > 65535 || checkName(e.Host) != nil || checkUser(e.User) != nil || e.ConnectTimeout <= 0 {
			t.Fatalf("%+v", e)
		}
	})
}
