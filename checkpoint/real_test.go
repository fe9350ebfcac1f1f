package checkpoint

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/checkpoint/archive"
	"github.com/gangrun/gangrun/checkpoint/compressed"
	"github.com/gangrun/gangrun/checkpoint/flaw"
)

// TestMain runs the test binary once more as a writer that can be killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("GANGRUN_TEST_DIR"); dir != "" {
		writeOn(dir)
	}
	if path := os.Getenv("GANGRUN_TEST_VERIFY"); path != "" {
		bigVerify(path)
	}
	code := m.Run()
	for _, dir := range made {
		if os.RemoveAll(dir) != nil {
			code = 1
		}
	}
	os.Exit(code)
}

// checkBytes checks content as the content of a file with that name.
func checkBytes(name string, content []byte) (string, error) {
	f := &file{Ctx: context.Background(), R: bytes.NewReader(content), Size: int64(len(content))}
	if f.Size == 0 {
		return "", flaw.Flaw("it is empty")
	}
	return check(f, sniff(name, content[:min(len(content), 64)]), name)
}

// realFormats are the files that real makes.
var realFormats = map[string]string{
	"zip.pt": formatTorch, "script.pt": formatTorch,
	"legacy.pt": formatLegacy, "legacy4.pt": formatLegacy, "legacy-module.pt": formatLegacy, "legacy-quantized.pt": formatLegacy,
	"legacy-storage.pt": formatLegacy, "legacy-sparse.pt": formatLegacy, "legacy-scalar.pt": formatLegacy,
	"protocol0.pkl": formatPickle, "protocol1.pkl": formatPickle, "protocol2.pkl": formatPickle,
	"protocol3.pkl": formatPickle, "protocol4.pkl": formatPickle, "protocol5.pkl": formatPickle, "several.pkl": formatPickle, "mixed.pkl": formatPlain,
	"arrays.npz": formatNPZ, "packed.npz": formatNPZ,
	"fortran.npy": formatNPY, "fields.npy": formatNPY, "objects.npy": formatNPY, "scalar.npy": formatNPY, "nothing.npy": formatNPY, "dates.npy": formatNPY, "several.npy": formatNPY,
	"zip64.zip": formatZip, "joblib.pkl": formatCompressed, "weights.gz": formatCompressed, "weights.bz2": formatCompressed,
	"dcp-20": formatDCP,
}

func TestRealFilesAreComplete(t *testing.T) {
	dir, err := real()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(realFormats) {
		t.Errorf("there are %d files (%v), want %d", len(entries), err, len(realFormats))
	}
	for name, format := range realFormats {
		got, err := Verify(t.Context(), filepath.Join(dir, name))
		if err != nil || got.Format != format {
			t.Errorf("%s is %q (%v), want %q", name, got.Format, err, format)
		}
		if err == nil && (got.Path != filepath.Join(dir, name) || got.Bytes <= 0 || time.Since(got.Time) > time.Hour) {
			t.Errorf("%s is %+v", name, got)
		}
	}
}

// TestTruncatedAnywhere checks that no beginning of a real file is complete. It leaves out files that have
// several checkpoints one after another.
func TestTruncatedAnywhere(t *testing.T) {
	for name, format := range realFormats {
		if format == formatDCP || strings.HasPrefix(name, "several") || name == "mixed.pkl" {
			continue
		}
		content := realFile(t, name)
		step := max(1, len(content)/400)
		for n := 0; n < len(content); n += step {
			if got, err := checkBytes(name, content[:n]); !flaw.Is(err) {
				t.Errorf("the first %d of %d bytes of %s are %q (%v)", n, len(content), name, got, err)
				break
			}
		}
		if got, err := checkBytes(name, content[:len(content)-1]); !flaw.Is(err) {
			t.Errorf("all of %s but its last byte is %q (%v)", name, got, err)
		}
		// A power loss may leave a file of the right size that has only zeros.
		if got, err := checkBytes(name, make([]byte, len(content))); !flaw.Is(err) && got != formatPlain {
			t.Errorf("%s of zeros is %q (%v)", name, got, err)
		}
	}
}

// TestTruncatedSeveral truncates files that have several checkpoints. Only the beginnings that end between two
// checkpoints may be complete.
func TestTruncatedSeveral(t *testing.T) {
	for name, whole := range map[string]int{"several.pkl": 1, "several.npy": 4} {
		content := realFile(t, name)
		good := 0
		for n := range content {
			if _, err := checkBytes(name, content[:n]); err == nil {
				good++
			} else if !flaw.Is(err) {
				t.Errorf("the first %d bytes of %s: %v", n, name, err)
			}
		}
		if good != whole {
			t.Errorf("%d beginnings of %s are complete, want %d", good, name, whole)
		}
	}
}

// unpack returns the content of an archive or a compressed file, as other readers read it.
func unpack(content []byte) (string, error) {
	for magic, open := range map[string]func(io.Reader) (io.Reader, error){"\x1f\x8b": compressed.Gzip, "BZ": compressed.Bzip2, "\x78": compressed.Zlib} {
		if strings.HasPrefix(string(content), magic) {
			r, err := open(bytes.NewReader(content))
			if err != nil {
				return "", err
			}
			all, err := io.ReadAll(r)
			return string(all), err
		}
	}
	r, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, e := range r.File {
		data, err := e.Open()
		if err != nil {
			return "", err
		}
		all.WriteString(e.Name + "\x00")
		if _, err := io.Copy(&all, data); err != nil {
			return "", err
		}
	}
	return all.String(), nil
}

// TestFlippedBits changes single bits in files of every format with checksums. The check must find the wrong
// bit, or the bit must not change the content.
func TestFlippedBits(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"zip.pt", "script.pt", "arrays.npz", "packed.npz", "zip64.zip", "weights.gz", "weights.bz2", "joblib.pkl"} {
		content := realFile(t, name)
		before, err := unpack(content)
		if err != nil {
			t.Fatal(err)
		}
		harmless := 0
		const flips = 1000
		for range flips {
			bit := rnd.IntN(8 * len(content))
			damaged := slices.Clone(content)
			damaged[bit/8] ^= 1 << (bit % 8)
			got, err := checkBytes(name, damaged)
			if err != nil && !flaw.Is(err) {
				t.Fatalf("%s with bit %d flipped: %v", name, bit, err)
			}
			if err != nil || got == formatPlain || got == formatPickle {
				continue
			}
			harmless++
			if after, err := unpack(damaged); err != nil || after != before {
				t.Errorf("%s with bit %d flipped is %q, but holds something else (%v)", name, bit, got, err)
			}
		}
		if harmless > flips*3/4 {
			t.Errorf("%d of %d flips in %s were not found", harmless, flips, name)
		}
	}
}

func TestReasons(t *testing.T) {
	torch := realFile(t, "zip.pt")
	header := torch[bytes.Index(torch, []byte("zip/data/3"))-archive.LocalLen:]
	flipped := slices.Clone(torch)
	flipped[len(torch)-len(header)+archive.LocalLen+int(le.Uint16(header[26:]))+int(le.Uint16(header[28:]))] ^= 1
	nested := nestedZip(t)
	for name, test := range map[string]struct {
		file    string
		content []byte
		want    string
	}{
		"cut":            {"a.pt", torch[:len(torch)/2], "truncated: it has no end-of-central-directory record"},
		"flipped":        {"a.pt", flipped, "truncated: entry zip/data/3 fails its CRC"},
		"zeros":          {"a.pt", make([]byte, 100), "it begins neither like a zip archive nor like a pickle"},
		"empty":          {"a.pt", nil, "it is empty"},
		"archive within": {"a.zip", nested, "truncated: the end-of-central-directory record at its end is not its own"},
		"legacy":         {"a.pt", realFile(t, "legacy.pt")[:3500], "truncated: it ends within storage"},
		"pickle":         {"a.pkl", realFile(t, "protocol4.pkl")[:400], "truncated: it ends within its pickle"},
		"array":          {"a.npy", realFile(t, "fortran.npy")[:170], "truncated: it has 170 bytes, but its header says 176"},
		"wrong array":    {"a.npy", []byte("hello world"), "it does not begin like an array of numpy's"},
		"gzip":           {"a.gz", realFile(t, "weights.gz")[:200], "truncated: its compressed data has no end"},
	} {
		path := filepath.Join(t.TempDir(), test.file)
		if err := os.WriteFile(path, test.content, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Verify(t.Context(), path)
		var incomplete *IncompleteError
		if !errors.As(err, &incomplete) || !strings.HasPrefix(incomplete.Reason, test.want) || incomplete.Path != path {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// nestedZip returns the beginning of an archive. It ends with another, complete archive that is stored in the
// first one.
func nestedZip(t testing.TB) []byte {
	t.Helper()
	var inner, outer bytes.Buffer
	for _, w := range []struct {
		to      *bytes.Buffer
		name    string
		content func() []byte
	}{
		{&inner, "data", func() []byte { return []byte("content") }},
		{&outer, "inner.pt", func() []byte { return inner.Bytes() }},
	} {
		z := zip.NewWriter(w.to)
		e, err := z.CreateHeader(&zip.FileHeader{Name: w.name, Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Write(w.content()); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	end := bytes.Index(outer.Bytes(), inner.Bytes()) + inner.Len()
	return outer.Bytes()[:end]
}

// TestNoChecksums checks that an archive without checksums is complete. torch.save can be told to write such
// archives.
func TestNoChecksums(t *testing.T) {
	content := realFile(t, "zip.pt")
	r, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	var sums [][]byte
	for _, e := range r.File {
		sums = append(sums, le.AppendUint32(nil, e.CRC32))
	}
	for _, sum := range sums {
		content = bytes.ReplaceAll(content, sum, make([]byte, 4))
	}
	if got, err := checkBytes("a.pt", content); err != nil || got != formatTorch {
		t.Errorf("it is %q (%v), want %q", got, err, formatTorch)
	}
}

func TestDistributed(t *testing.T) {
	made, err := real()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		damage func(dir string) error
		want   string
	}{
		"whole":           {func(string) error { return nil }, ""},
		"unfinished":      {func(dir string) error { return os.Remove(dir + "/.metadata") }, "__0_0.distcp: .metadata is missing: it was not finished"},
		"file missing":    {func(dir string) error { return os.Remove(dir + "/__1_0.distcp") }, ".metadata: __1_0.distcp: it is missing"},
		"file cut":        {func(dir string) error { return os.Truncate(dir+"/__0_0.distcp", 1000) }, ".metadata: __0_0.distcp: truncated: it has 1000 bytes, but should have"},
		"metadata cut":    {func(dir string) error { return os.Truncate(dir+"/.metadata", 200) }, ".metadata: truncated: it ends within its pickle"},
		"metadata of old": {func(dir string) error { return os.WriteFile(dir+"/.metadata", []byte("\x80\x04}."), 0o600) }, ".metadata: it names no data"},
		"byte wrong": {func(dir string) error {
			content, err := os.ReadFile(dir + "/__1_0.distcp")
			at := bytes.Index(content, []byte("\x00\x00\x80\x3f"))
			content[at] ^= 1
			return errors.Join(err, os.WriteFile(dir+"/__1_0.distcp", content, 0o600))
		}, ".metadata: __1_0.distcp: truncated: entry archive/data/0 fails its CRC"},
		"other state": {func(dir string) error { return os.WriteFile(dir+"/extra.pt", []byte("PK\x03\x04"), 0o600) }, "extra.pt: truncated"},
		"temporary":   {func(dir string) error { return os.WriteFile(dir+"/.metadata.tmp", nil, 0o600) }, "it holds .metadata.tmp, which was not finished"},
	} {
		dir := filepath.Join(t.TempDir(), "dcp-20")
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(made, "dcp-20"))); err != nil {
			t.Fatal(err)
		}
		if err := test.damage(dir); err != nil {
			t.Fatal(err)
		}
		got, err := Verify(t.Context(), dir)
		var incomplete *IncompleteError
		switch {
		case test.want == "" && (err != nil || got.Format != formatDCP || got.Step != 20):
			t.Errorf("%s: %+v (%v)", name, got, err)
		case test.want != "" && (!errors.As(err, &incomplete) || !strings.HasPrefix(incomplete.Reason, test.want)):
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
