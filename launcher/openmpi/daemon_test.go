package openmpi_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/launcher/openmpi"
)

// measured is the command line that mpirun 4.1.4 gave to its agent, as recorded.
const measured = ` orted -mca ess "env" -mca ess_base_jobid "1230700544" -mca ess_base_vpid 1 -mca orte_node_regex "vm,[3:198].18.0.2@0(2)" -mca orte_hnp_uri "1230700544.0;tcp://192.0.2.2:53129;tcp6://[fd00::2]:55823" -mca plm "rsh" -mca ras "^slurm,tm" -mca orte_tmpdir_base "/tmp/h0" -mca btl_vader_backing_directory "/shm/h0" -mca pmix "^s1,s2,cray,isolated"`

func TestParseDaemon(t *testing.T) {
	argv := []string{"orted", "-mca", "ess", "env", "-mca", "ess_base_jobid", "1230700544", "-mca", "ess_base_vpid", "1",
		"-mca", "orte_node_regex", "vm,[3:198].18.0.2@0(2)",
		"-mca", "orte_hnp_uri", "1230700544.0;tcp://192.0.2.2:53129;tcp6://[fd00::2]:55823",
		"-mca", "plm", "rsh", "-mca", "ras", "^slurm,tm", "-mca", "pmix", "^s1,s2,cray,isolated"}
	prefix := `PATH=/opt/bin:$PATH ; export PATH ; LD_LIBRARY_PATH=/opt/lib:${LD_LIBRARY_PATH:-} ; export LD_LIBRARY_PATH ; `
	tests := []struct {
		name, line string
		argv, env  []string
	}{
		{"measured", measured, argv, nil},
		{"sh as login shell", "( test ! -r ./.profile || . ./.profile;" + measured + ")", argv, nil},
		{"prefix", prefix + " /opt/bin/orted -mca ess env", []string{"/opt/bin/orted", "-mca", "ess", "env"},
			[]string{"PATH=/opt/bin:$PATH", "LD_LIBRARY_PATH=/opt/lib:$LD_LIBRARY_PATH"}},
		{"one export of two", `A=1; B='x y'; export A B; prted`, []string{"prted"}, []string{"A=1", "B=x y"}},
		{"export with a value", `export OPAL_PREFIX=/opt/a\ b; orted`, []string{"orted"}, []string{"OPAL_PREFIX=/opt/a b"}},
		{"before the command", `A=1 prted --prtemca a b`, []string{"prted", "--prtemca", "a", "b"}, []string{"A=1"}},
		{"another node's", `prted --prtemca prte_tmpdir_base /x --prtemca a b --mca btl_sm_backing_directory /y`, []string{"prted", "--prtemca", "a", "b"}, nil},
		{"set twice", `A=1; A=2; orted`, []string{"orted"}, []string{"A=2"}},
		{"quotes", `orted "a\"b" 'c$d' "" e\;f "\$x"`, []string{"orted", `a"b`, "c$d", "", "e;f", "$x"}, nil},
		{"bytes that are not UTF-8", "A=/t\xe9/\xff:$A; orted -mca a '/\xfe\\' /\u00a0\ue0ff", []string{"orted", "-mca", "a", "/\xfe\\", "/\u00a0\ue0ff"}, []string{"A=/t\xe9/\xff:$A"}},
		{"lines", "A=1\nexport A\norted a\\\nb\n", []string{"orted", "ab"}, []string{"A=1"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			argv, env, err := openmpi.ParseDaemon(test.line)
			if err != nil || !slices.Equal(argv, test.argv) || !slices.Equal(env, test.env) {
				t.Errorf("%q, %q, %v\nwant %q, %q", argv, env, err, test.argv, test.env)
			}
		})
	}
}

func TestParseDaemonRefuses(t *testing.T) {
	for _, line := range []string{
		"", " ", "A=1", "#orted", "rm -rf x", "sh -c orted", "/opt/bin/orted2", "echo; orted", "orted; rm x", "orted; orted", "orted & ", "orted && x",
		"orted | x", "orted > x", "! orted", "orted $(x)", "orted `x`", `orted "$(x)"`, "orted $HOME", `orted "$HOME"`, "orted *", "orted ~",
		"orted {a,b}", "A=$B orted", "A=$(x) orted", "PATH=a:$PATH:$HOME; orted", "A=${A:-x}; orted", "A=${#A}; orted", "PATH=a:$PATH; PATH=b:$PATH; orted",
		"A+=1; orted", "A='$A'; orted", "export A; orted", "export 1=2; orted", ". ./.profile; orted", "(test ! -r ./.profile || . ./x; orted)",
		"if a; then orted; fi", "f() { orted; }", "exec orted", "orted 'x", "orted <<x\nx\n", "orted $((1))", "set a = b; orted", "(orted) > x", "{ orted; }",
	} {
		if argv, env, err := openmpi.ParseDaemon(line); err == nil || argv != nil || env != nil {
			t.Errorf("%q: %q, %q, %v; want an error alone", line, argv, env, err)
		} else if !strings.Contains(err.Error(), "mpirun's command for its daemon") {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestExpand(t *testing.T) {
	got := openmpi.Expand([]string{"PATH=/opt/bin:$PATH", "A=b", "LD_LIBRARY_PATH=/opt/lib:$LD_LIBRARY_PATH"}, []string{"PATH=/x", "PATH=/bin"})
	if want := []string{"PATH=/opt/bin:/bin", "A=b", "LD_LIBRARY_PATH=/opt/lib:"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestDaemonEnv(t *testing.T) {
	remote := openmpi.DaemonEnv("198.18.0.2", "/t", "/s")
	for _, want := range []string{"PMIX_HOSTNAME=198.18.0.2", "OMPI_MCA_orte_tmpdir_base=/t", "PRTE_MCA_prte_tmpdir_base=/t", "OMPI_MCA_btl_vader_backing_directory=/s", "OMPI_MCA_btl_sm_backing_directory=/s"} {
		if !slices.Contains(remote, want) {
			t.Errorf("%q lacks %q", remote, want)
		}
	}
	for _, node := range []string{"localhost", "127.0.0.1", "::1"} {
		for _, entry := range openmpi.DaemonEnv(node, "/t", "/s") {
			if strings.Contains(entry, "/s") {
				t.Errorf("%s: mpirun would tell the ranks of all nodes %q", node, entry)
			}
		}
	}
	if got := openmpi.DaemonEnv("localhost", "", ""); !slices.Equal(got, []string{"PMIX_HOSTNAME=localhost"}) {
		t.Errorf("no directories: %q", got)
	}
}

// TestParseDaemonAgreesWithShell checks that a shell understands each accepted line as ParseDaemon does. It runs
// printf in place of the daemon.
func TestParseDaemonAgreesWithShell(t *testing.T) {
	for _, line := range []string{measured, `orted a"b c"'d e'\ f "x\y" 'a\b' "a
b"`, `A="1 2"; export A; orted "" ''`, "( test ! -r ./.profile || . ./.profile; orted [a] a=b )"} {
		argv, _, err := openmpi.ParseDaemon(line)
		if err != nil {
			t.Errorf("%q: %v", line, err)
			continue
		}
		cmd := exec.Command("/bin/sh", "-c", `orted() { printf '%s\0' "$@"; }; `+line)
		cmd.Dir = t.TempDir()
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		shell := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		if line == measured { // a shell does not know which parts belong to another node
			shell = slices.DeleteFunc(shell, func(arg string) bool {
				return slices.Contains([]string{"orte_tmpdir_base", "/tmp/h0", "btl_vader_backing_directory", "/shm/h0"}, arg)
			})
			argv = slices.DeleteFunc(argv, func(arg string) bool { return arg == "-mca" })
			shell = slices.DeleteFunc(shell, func(arg string) bool { return arg == "-mca" })
		}
		if !slices.Equal(argv[1:], shell) {
			t.Errorf("%q: %q, a shell says %q", line, argv[1:], shell)
		}
	}
}

func FuzzParseDaemon(f *testing.F) {
	for _, line := range []string{measured, "PATH=/a:$PATH; export PATH; orted", "( test ! -r ./.profile || . ./.profile; prted a)", `orted "a\$b" 'c'`, "orted; x", "A=${A:-}; prted"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		argv, env, err := openmpi.ParseDaemon(line)
		if err != nil {
			if argv != nil || env != nil {
				t.Errorf("%q: %q, %q beside %v", line, argv, env, err)
			}
			return
		}
		if base := argv[0][strings.LastIndexByte(argv[0], '/')+1:]; base != "orted" && base != "prted" {
			t.Errorf("%q starts %q", line, argv[0])
		}
		for _, word := range slices.Concat(argv, env) {
			if strings.ContainsRune(word, 0) {
				t.Errorf("%q has a NUL in %q", line, word)
			}
		}
		for _, entry := range env {
			name, value, ok := strings.Cut(entry, "=")
			if !ok || name == "" || strings.Contains(strings.Replace(value, "$"+name, "", 1), "$") {
				t.Errorf("%q sets %q", line, entry)
			}
		}
	})
}
