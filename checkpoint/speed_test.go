package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/checkpoint/archive"
)

// bigEnv is the variable with the number of bytes that TestBig verifies, for example "10000000000". Without the
// variable, TestBig verifies 64 MB.
const bigEnv = "GANGRUN_TEST_BIG"

// writeBig writes the beginning and the end of a file of torch.save or safetensors with about size bytes of
// numbers, all zero, between them. The file is sparse.
func writeBig(t *testing.T, path string, size int64) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var begin, end []byte
	if filepath.Ext(path) == ".pt" {
		z := &bigZip{&endless{reads: -1}, size}
		begin = make([]byte, 64)
		end = make([]byte, archive.CentralLen+4+20+archive.End64Len+archive.Locator64Len+archive.EndLen)
		for b, off := range map[*[]byte]int64{&begin: 0, &end: size - int64(len(end))} {
			if _, err := z.ReadAt(*b, off); err != nil {
				t.Fatal(err)
			}
		}
	} else {
		elements := (size - 4096) / 4
		header, err := json.Marshal(map[string]any{"w": map[string]any{"dtype": "F32", "shape": []int64{elements}, "data_offsets": []int64{0, elements * 4}}})
		if err != nil {
			t.Fatal(err)
		}
		begin = append(le.AppendUint64(nil, uint64(len(header))), header...)
		size = int64(len(begin)) + elements*4
	}
	if _, err := f.Write(begin); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(end, size-int64(len(end))); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
}

// bigVerify is what the test binary does in a process that TestBig starts. It verifies a file deeply, and
// prints the maximum of the memory that it has used.
func bigVerify(path string) {
	list, err := List(context.Background(), filepath.Dir(path), true)
	status, err2 := os.ReadFile("/proc/self/status")
	if err != nil || err2 != nil || len(list) != 1 || list[0].Verdict != Good {
		fmt.Println(list, err, err2)
		os.Exit(1)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fmt.Println(strings.Fields(rest)[0])
	os.Exit(0)
}

// TestBig verifies big files and their numbers, each in a process of its own. The process must use less than 64
// MiB of memory. For 10 GB, it must be at least half as fast as cat.
func TestBig(t *testing.T) {
	size := int64(64 << 20)
	if text := os.Getenv(bigEnv); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		size = n
	}
	for _, name := range []string{"model-20.safetensors", "model-20.pt"} {
		path := filepath.Join(t.TempDir(), name)
		writeBig(t, path, size)
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cat, ours := time.Duration(1<<62), time.Duration(1<<62)
		peak := 0
		for range 2 { // the better of two in turn counts, because other programs may disturb one
			begin := time.Now()
			c := exec.Command("cat", path)
			c.Stdout = io.Writer(nil)
			if err := c.Run(); err != nil {
				t.Fatal(err)
			}
			cat = min(cat, time.Since(begin))
			begin = time.Now()
			v := exec.Command(self)
			v.Env = append(os.Environ(), "GANGRUN_TEST_VERIFY="+path)
			out, err := v.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			ours = min(ours, time.Since(begin))
			n, err := strconv.Atoi(string(bytes.TrimSpace(out)))
			if err != nil {
				t.Fatal(err)
			}
			peak = max(peak, n)
		}
		t.Logf("%s: %d bytes: cat %.2f s, verified in %.2f s, in at most %d kB", name, size, cat.Seconds(), ours.Seconds(), peak)
		if peak >= 64<<10 {
			t.Errorf("%s takes %d kB of memory", name, peak)
		}
		if size >= 10e9 && ours > 2*cat {
			t.Errorf("%s: verified in %s, cat takes %s", name, ours, cat)
		}
	}
}
