package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/checkpoint/archive"
	"github.com/gangrun/gangrun/checkpoint/flaw"
)

// writeOn writes one checkpoint after another, each with the content of stdin, in small pieces. It prints a
// line when it begins a checkpoint. The test kills it in the middle of a checkpoint. If the test does not do so
// in time, writeOn ends.
func writeOn(dir string) {
	content, err := io.ReadAll(os.Stdin)
	for step := 1; err == nil; step++ {
		var file *os.File
		if file, err = os.Create(filepath.Join(dir, fmt.Sprintf("ckpt-%d%s", step, os.Getenv("GANGRUN_TEST_EXT")))); err != nil {
			break
		}
		fmt.Println(step)
		for rest := content; len(rest) > 0 && err == nil; {
			n := min(len(rest), 97)
			_, err = file.Write(rest[:n])
			if rest = rest[n:]; step == 200 {
				os.Exit(1)
			}
		}
		err = errors.Join(err, file.Close())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// TestKilledWriter kills a writer in the middle of a checkpoint, many times. The newest checkpoint that is
// found must be complete, and at most one older than the one that was being written.
func TestKilledWriter(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, name := range []string{"zip.pt", "legacy.pt", "protocol4.pkl", "arrays.npz", "fields.npy"} {
		content := realFile(t, name)
		for range 4 {
			dir := t.TempDir()
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), "GANGRUN_TEST_DIR="+dir, "GANGRUN_TEST_EXT="+filepath.Ext(name))
			cmd.Stdin, cmd.Stderr = bytes.NewReader(content), os.Stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			begun, until := 0, 2+rnd.IntN(20)
			for {
				var step int
				if _, err := fmt.Fscanln(out, &step); err != nil {
					break
				}
				if begun = step; begun == until {
					cmd.Process.Kill()
				}
			}
			cmd.Wait()
			best, skipped, err := Newest(t.Context(), dir)
			if err != nil || best.Step < int64(begun)-1 || len(skipped) > 1 {
				t.Fatalf("%s: of %d begun the newest is %+v, skipped %v (%v)", name, begun, best, skipped, err)
			}
			if got, err := os.ReadFile(best.Path); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s: %s has %d bytes, not what was written (%v)", name, best.Path, len(got), err)
			}
		}
	}
}

const trainScript = `
import os, sys, torch
mode, path = sys.argv[1:3]
if mode == "load":
    state = torch.load(path)
    print(state["step"], len(state["model"]))
    sys.exit(0)
for step in range(1, 40): # it is to be killed before
    model = {f"layer{i}": torch.full((200, 500), float(step)) for i in range(8)}
    legacy = dict(_use_new_zipfile_serialization=step % 2 == 0)
    print(step, flush=True)
    torch.save({"step": step, "model": model}, os.path.join(path, f"ckpt-{step:06d}.pt"), **legacy)
`

// TestKilledTraining kills a real program in the middle of torch.save. torch must be able to load the newest
// checkpoint that is found then.
func TestKilledTraining(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("/usr/bin/python3", "-c", trainScript, "train", dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	begun := 0
	for {
		var step int
		if _, err := fmt.Fscanln(out, &step); err != nil {
			break
		}
		if begun = step; begun == 5 {
			cmd.Process.Kill()
		}
	}
	cmd.Wait()
	best, skipped, err := Newest(t.Context(), dir)
	if err != nil || best.Step < int64(begun)-1 || len(skipped) > 1 {
		t.Fatalf("of %d begun the newest is %+v, skipped %v (%v)", begun, best, skipped, err)
	}
	loaded, err := exec.Command("/usr/bin/python3", "-c", trainScript, "load", best.Path).CombinedOutput()
	if want := fmt.Sprintf("%d 8", best.Step); err != nil || strings.TrimSpace(string(loaded)) != want {
		t.Errorf("torch loads %q (%v) from %s, want %q", loaded, err, best.Path, want)
	}
}

// endless is a file of any size that has zeros after its head. It ends ctx when it was read reads times.
type endless struct {
	head  []byte
	reads int
	end   context.CancelFunc
}

func (e *endless) ReadAt(p []byte, off int64) (int, error) {
	if e.reads--; e.reads == 0 {
		e.end()
	}
	clear(p)
	if off < int64(len(e.head)) {
		copy(p, e.head[off:])
	}
	return len(p), nil
}

// bigPickle is the beginning of a pickle of one object of n bytes.
func bigPickle(n uint64) []byte {
	return le.AppendUint64([]byte{0x80, 4, 0x8e}, n)
}

// TestCancelledInTheMidst checks that Verify stops reading a file of 100 GB when ctx ends.
func TestCancelledInTheMidst(t *testing.T) {
	const size = 100e9
	for name, r := range map[string]func(*endless) io.ReaderAt{
		"a.pkl": func(e *endless) io.ReaderAt { e.head = bigPickle(size); return e },
		"a.zip": func(e *endless) io.ReaderAt { return &bigZip{e, size} },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		e := &endless{reads: 40, end: cancel}
		f := &file{Ctx: ctx, R: r(e), Size: size}
		head, err := f.Bytes(0, 16)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := check(f, sniff(name, head), name); !errors.Is(err, context.Canceled) || e.reads < -10 {
			t.Errorf("%s: %v after %d reads, want context.Canceled after 40", name, err, 40-e.reads)
		}
		cancel()
	}
}

// bigZip is an archive with one entry that is about as large as the archive.
type bigZip struct {
	*endless
	size int64
}

func (z *bigZip) ReadAt(p []byte, off int64) (int, error) {
	const name = "data"
	local := make([]byte, archive.LocalLen)
	copy(local, archive.Local)
	le.PutUint16(local[26:], uint16(len(name)))
	z.head = append(local, name...)
	n, err := z.endless.ReadAt(p, off)

	const centralLen = archive.CentralLen + len(name) + 20
	at := z.size - int64(centralLen+archive.End64Len+archive.Locator64Len+archive.EndLen)
	data := uint64(at) - uint64(len(z.head))
	end := make([]byte, archive.CentralLen)
	copy(end, archive.Central)
	copy(end[20:], "\xff\xff\xff\xff\xff\xff\xff\xff\x04\x00\x14\x00")
	end = le.AppendUint64(le.AppendUint64(append(end, name+"\x01\x00\x10\x00"...), data), data)
	record := make([]byte, archive.End64Len+archive.Locator64Len+archive.EndLen)
	copy(record, archive.End64)
	le.PutUint64(record[24:], 1)
	le.PutUint64(record[32:], 1)
	le.PutUint64(record[40:], uint64(centralLen))
	le.PutUint64(record[48:], uint64(at))
	locator := record[archive.End64Len:]
	copy(locator, archive.Locator64)
	le.PutUint64(locator[8:], uint64(at)+uint64(centralLen))
	le.PutUint32(locator[16:], 1)
	copy(locator[archive.Locator64Len:], archive.End+"\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")
	end = append(end, record...)
	for i := range p {
		if o := off + int64(i) - at; o >= 0 && o < int64(len(end)) {
			p[i] = end[o]
		}
	}
	return n, err
}

// TestMemory checks that big files are verified in little memory.
func TestMemory(t *testing.T) {
	const size = 256 << 20
	var numbers bytes.Buffer // a list that is built of many batches
	numbers.Write([]byte{0x80, 4, ']'})
	for range 2000 {
		numbers.WriteByte('(')
		numbers.Write(bytes.Repeat([]byte{'K', 1}, 1000))
		numbers.WriteByte('e')
	}
	numbers.WriteByte('.')
	for name, r := range map[string]*file{
		"big.pkl":  {Ctx: t.Context(), R: &endless{bigPickle(size), -1, nil}, Size: size + 11},
		"many.pkl": {Ctx: t.Context(), R: bytes.NewReader(numbers.Bytes()), Size: int64(numbers.Len())},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		head := make([]byte, 16)
		if _, err := r.ReadAt(head, 0); err != nil {
			t.Fatal(err)
		}
		_, err := check(r, sniff(name, head), name)
		runtime.ReadMemStats(&after)
		if name == "big.pkl" != flaw.Is(err) { // the pickle has no STOP
			t.Errorf("%s: %v", name, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
			t.Errorf("%s took %d bytes of memory", name, used)
		}
	}
}

func BenchmarkVerifyZip(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a.pt")
	script := `import sys, torch; torch.save({i: torch.rand(1000, 1000) for i in range(64)}, sys.argv[1])`
	if out, err := exec.Command("/usr/bin/python3", "-c", script, path).CombinedOutput(); err != nil {
		b.Fatal(err, string(out))
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		if _, err := Verify(context.Background(), path); err != nil {
			b.Fatal(err)
		}
	}
}
