package main_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAttachTellsOfAnotherEnvironment checks that gangrun attach says once which variables will differ in the
// environment of later attempts. The values of the variables must not be written anywhere.
func TestAttachTellsOfAnotherEnvironment(t *testing.T) {
	t.Parallel()
	const changed, missing, added = "GR_TEST_CHANGED", "GR_TEST_MISSING", "GR_TEST_ADDED"
	const value = "value-5d2c71"
	for name, moved := range map[string]bool{"another": true, "the same": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.env = []string{changed + "=" + value + "-before", missing + "=" + value}
			r := b.start(nil, "--retries", "2", "--preflight", "off", "-n", "1", "--", "sh", "-c",
				`case $GANGRUN_ATTEMPT in 1) : >ready; exec sleep 1000 ;; 2) kill -9 $$ ;; esac`)
			for limit := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
				if _, err := os.Stat(filepath.Join(b.dir, "ready")); err == nil {
					break
				}
				if time.Now().After(limit) {
					t.Fatalf("the rank has not started within %s", patience)
				}
			}
			if err := r.cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			<-r.exited
			want := 0
			if moved {
				want = 1
				b.env = []string{changed + "=" + value + "-after", added + "=" + value}
			}
			said, err := b.command("attach").CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			note := "gangrun: note: attempt 2 has the environment of gangrun attach, not that of gangrun run: another value of " + changed + "; without " + missing + "; with " + added + "\n"
			if n := strings.Count(string(said), note); n != want || strings.Count(string(said), "note: attempt") != want {
				t.Errorf("it was told %d times, want %d, that\n%sit said:\n%s", n, want, note, said)
			}
			if n := len(b.status().Attempts); n != 3 {
				t.Errorf("%d attempts, want 3", n)
			}
			if err := filepath.WalkDir(filepath.Join(b.dir, "home"), func(path string, d os.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return err
				}
				text, err := os.ReadFile(path)
				if bytes.Contains(text, []byte(value)) {
					t.Errorf("%s holds a value of the environment", path)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}
