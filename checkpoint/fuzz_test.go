package checkpoint

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/checkpoint/archive"
	"github.com/gangrun/gangrun/checkpoint/blob"
	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/fortran"
	"github.com/gangrun/gangrun/checkpoint/numpy"
	"github.com/gangrun/gangrun/checkpoint/pickle"
	"github.com/gangrun/gangrun/checkpoint/pyliteral"
	"github.com/gangrun/gangrun/checkpoint/sstable"
	"github.com/gangrun/gangrun/checkpoint/tensorflow"
	"github.com/gangrun/gangrun/checkpoint/torchfile"
)

// fuzz checks files with random content. Each file must be complete or have a flaw. No check may panic, use
// unbounded memory, or report a fault of the file as an error in reading it.
func fuzz(f *testing.F, name string, seeds [][]byte, holds func(t *testing.T, data []byte, format string)) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		format, err := checkBytes(name, data)
		if err != nil && !flaw.Is(err) {
			t.Fatalf("%v is no flaw", err)
		}
		if err == nil && holds != nil {
			holds(t, data, format)
		}
	})
}

func zipSeeds(f *testing.F) [][]byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, method := range map[string]uint16{"a/data.pkl": zip.Store, "b.npy": zip.Deflate, "c": 99} {
		w.RegisterCompressor(99, nil)
		if method == 99 {
			e, err := w.CreateRaw(&zip.FileHeader{Name: name, Method: method, CompressedSize64: 3, UncompressedSize64: 9})
			if err == nil {
				_, err = e.Write([]byte("xyz"))
			}
			if err != nil {
				f.Fatal(err)
			}
			continue
		}
		e, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err == nil {
			_, err = e.Write(npySeeds()[0])
		}
		if err != nil {
			f.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	return [][]byte{out.Bytes(), nestedZip(f), []byte(archive.End + strings.Repeat("\x00", 18))}
}

func FuzzZip(f *testing.F) {
	fuzz(f, "a.npz", zipSeeds(f), func(t *testing.T, data []byte, format string) {
		if format != formatNPZ && format != formatTorch && format != formatZip {
			return // the data begins like another format
		}
		r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil || len(r.File) == 0 {
			t.Fatalf("another reader finds %d entries (%v)", len(r.File), err)
		}
	})
}

func npySeeds() [][]byte {
	header := func(text string, data int) []byte {
		b := append([]byte(numpy.Magic), 1, 0)
		b = le.AppendUint16(b, uint16(len(text)))
		return append(append(b, text...), make([]byte, data)...)
	}
	return [][]byte{
		header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24),
		header("{'descr': [('a', '<i8'), ('b', '|S3', (2,))], 'fortran_order': True, 'shape': (1,)}", 14),
		append(header("{'descr': '|O', 'shape': (1L,)}", 0), "\x80\x02N."...),
	}
}

func FuzzNPY(f *testing.F) { fuzz(f, "a.npy", npySeeds(), nil) }

func FuzzLiteral(f *testing.F) {
	f.Add("{'descr': [('a', '<i8'), ('b', \"x\\'\", (2,))], 'shape': (), 'x': None}")
	f.Add("((((1,), [2L, -3], True)))")
	f.Fuzz(func(t *testing.T, text string) {
		v, err := pyliteral.Parse(text)
		if err == nil && strings.TrimLeft(text, " \t\r\n\x00") == "" {
			t.Errorf("%q is %v", text, v)
		}
	})
}

func FuzzPickle(f *testing.F) {
	seeds := [][]byte{
		[]byte("\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00K\x01."), []byte("(lp0\nI1\naF2.5\naS'x'\np1\na."),
		[]byte("\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01K\x01u."), []byte("cos\nsystem\n(S'x'\ntR."),
		[]byte("\x80\x04\x8c\x14joblib.numpy_pickle.\x8c\x01x\x93."),
	}
	fuzz(f, "a.pkl", seeds, func(t *testing.T, data []byte, format string) {
		if format != formatPickle {
			return
		}
		if _, err := checkBytes("a.pkl", data[:len(data)-1]); err == nil && !bytes.HasSuffix(data, []byte("\x80")) {
			// Otherwise the last byte would be a pickle, but no pickle has only one byte.
			t.Error("it is complete without its last byte")
		}
		u := &pickle.Builder{Persist: func(any) (any, error) { return nil, nil }, Built: func(pickle.Global, *pickle.Dict) error { return nil }}
		if err := pickle.Scan(bufio.NewReader(bytes.NewReader(data)), u); err != nil && !flaw.Is(err) {
			t.Error(err)
		}
	})
}

// legacySeed returns a short file in torch.save's older format, with one storage.
func legacySeed() []byte {
	const magic = "\x80\x02\x8a\x0a" + torchfile.LegacyMagic + "."
	const version, system = "\x80\x02M\xe9\x03.", "\x80\x02}q\x00."
	const object = "\x80\x02(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x00kX\x03\x00\x00\x00cpuK\x02NtQ."
	const keys = "\x80\x02]q\x00X\x01\x00\x00\x00kq\x01a."
	return []byte(magic + version + system + object + keys + "\x02\x00\x00\x00\x00\x00\x00\x00" + "abcdefgh")
}

func FuzzLegacy(f *testing.F) {
	seed := legacySeed()
	if format, err := checkBytes("a.pt", seed); format != formatLegacy || err != nil {
		f.Fatalf("the seed is %q (%v)", format, err)
	}
	fuzz(f, "a.pt", [][]byte{seed, seed[:len(seed)-1]}, nil)
}

func FuzzSafetensors(f *testing.F) {
	fuzz(f, "a.safetensors", [][]byte{safetensorsFile(twoTensors, 32), safetensorsFile("{}", 0)}, nil)
}

func FuzzHDF5(f *testing.F) {
	fuzz(f, "a.h5", [][]byte{hdf5File(0, 0, 128, 0, 128), hdf5File(3, 0, 128, 0, 128), hdf5File(1, 512, 1024, 1, 1024)}, nil)
}

func FuzzCompressed(f *testing.F) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte("content")); err != nil {
		f.Fatal(err)
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	fuzz(f, "a.pkl.gz", [][]byte{out.Bytes(), []byte("BZh9"), {0x78, 0x9c}}, nil)
}

func FuzzTable(f *testing.F) {
	f.Add(tensorFlow(2, false)[".index"])
	f.Add(tensorFlow(1, true)[".index"])
	f.Fuzz(func(t *testing.T, data []byte) {
		table := &file{Ctx: context.Background(), R: bytes.NewReader(data), Size: int64(len(data))}
		err := sstable.Read(table, table.Size, func(key, value []byte) error {
			return tensorflow.CheckEntry(value)
		})
		if err != nil && !flaw.Is(err) {
			t.Errorf("%v is no flaw", err)
		}
	})
}

// FuzzBlock checks blocks without their checksums. FuzzTable cannot reach this code, because it cannot guess a
// checksum.
func FuzzBlock(f *testing.F) {
	whole := tableBlock(map[string]string{"": "\x08\x02", "layer/weights": "\x08\x01\x18\x00"}, false)
	f.Add(whole[:len(whole)-5])
	f.Add(snap(whole[:len(whole)-5]))
	f.Fuzz(func(t *testing.T, data []byte) {
		emit := func(_, value []byte) error {
			return tensorflow.CheckEntry(value)
		}
		if err := sstable.Entries(data, emit); err != nil && !flaw.Is(err) {
			t.Errorf("%v is no flaw", err)
		}
		plain, err := sstable.Unsnap(data)
		if err == nil {
			err = sstable.Entries(plain, emit)
		}
		if err != nil && !flaw.Is(err) {
			t.Errorf("%v is no flaw", err)
		}
	})
}

// FuzzMetadata fuzzes the metadata of torch.distributed.checkpoint, which name files. gangrun must not open a
// file outside of the directory.
func FuzzMetadata(f *testing.F) {
	const begin, end = "\x80\x04ctorch.distributed.checkpoint.filesystem\n_StorageInfo\n)\x81}(X\x0d\x00\x00\x00relative_path", "X\x06\x00\x00\x00offsetK\x00X\x06\x00\x00\x00lengthK\x04ub."
	f.Add([]byte(begin + "X\x01\x00\x00\x00x" + end))
	f.Add([]byte(begin + "X\x07\x00\x00\x00../../x" + end))
	root := f.TempDir()
	dir := filepath.Join(root, "a", "b")
	write(f, dir, map[string][]byte{"x": []byte("data"), dcpMetadata: nil})
	write(f, root, map[string][]byte{"x": []byte("out of reach")})
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, dcpMetadata), data, 0o600); err != nil {
			t.Fatal(err)
		}
		d := directory{root: dir, pool: blob.NewPool(context.Background(), nil)}
		defer d.pool.Close()
		if err := d.checkDCP(member{name: dcpMetadata}); err != nil && !flaw.Is(err) {
			t.Errorf("%v is no flaw", err)
		}
		for _, path := range d.pool.Paths() {
			if filepath.Dir(path) != dir {
				t.Errorf("it has read %q", path)
			}
		}
	})
}

// FuzzPrograms checks files of known programs. If the program marks the end of its files, a complete file must
// not be complete without its last byte.
func FuzzPrograms(f *testing.F) {
	for _, seed := range [][]byte{gromacs(40), lammps(0), lammps(3), records(4, -8, 8), []byte(espressoXML), []byte(cp2kInput), []byte("hdbm v1.0 ")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := checkBytes("a.cpt", data)
		if err != nil && !flaw.Is(err) {
			t.Fatalf("%v is no flaw", err)
		}
		all := &file{Ctx: context.Background(), R: bytes.NewReader(data), Size: int64(len(data))}
		for _, check := range []func(*file) error{
			fortran.Check, checkXML,
			func(f *file) error { return checkCP2K(f, "") },
			func(f *file) error { _, err := countLAMMPS(f); return err },
		} {
			if err := check(all); err != nil && !flaw.Is(err) {
				t.Fatalf("%v is no flaw", err)
			}
		}
		head := data[:min(len(data), 64)]
		if p := programOf("a.cpt", head); p == nil || p.open || err != nil || len(data) < 32 {
			return
		}
		if _, err := checkBytes("a.cpt", data[:len(data)-1]); err == nil {
			t.Error("it is whole without its last byte")
		}
	})
}
