package checkpoint

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/ocdbt"
	"github.com/gangrun/gangrun/checkpoint/sstable"
)

// Debian has no TensorStore. So these tests write databases themselves, by the documented format of OCDBT.

// sealed puts a header and a checksum around the body of a manifest or node.
func sealed(magic uint32, body []byte, pack bool) []byte {
	b := binary.BigEndian.AppendUint32(nil, magic)
	b = append(b, make([]byte, 8)...)
	if pack {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		if err != nil {
			panic(err)
		}
		b = append(b, 0, 1)
		b = w.EncodeAll(body, b)
	} else {
		b = append(append(b, 0, 0), body...)
	}
	le.PutUint64(b[4:], uint64(len(b)+4))
	return le.AppendUint32(b, crc32.Checksum(b, sstable.Castagnoli()))
}

func varints(n ...int) (b []byte) {
	for _, v := range n {
		b = binary.AppendUvarint(b, uint64(v))
	}
	return b
}

// oneFile returns a table of data files with one file. The first base bytes of its path are the base.
func oneFile(name string, base int) []byte {
	return append(varints(1, len(name), base), name...)
}

// database writes a database with two keys to dir. It has a root with one leaf below it, and the values in a
// data file. base is the beginning of the names of the data files.
func database(dir, base string, pack bool) error {
	value := bytes.Repeat([]byte("value"), 100)
	leaf := append([]byte{0}, oneFile("d/data", 0)...)
	leaf = append(leaf, varints(2, 2, 5, 1)...) // entries, common, lengths of keys
	leaf = append(leaf, "a/b/cd"...)
	leaf = append(leaf, varints(len(value), 3, 1, 0, 0, 0)...) // lengths, kinds, file, offset
	leaf = append(leaf, "xyz"...)
	node := sealed(ocdbt.NodeMagic, leaf, pack)
	inner := append([]byte{1}, oneFile("d/data", 0)...)
	inner = append(inner, varints(1, 1, 0)...)
	inner = append(inner, 'a')
	inner = append(inner, varints(0, len(value), len(node), 2, len(node), len(value))...)
	root := sealed(ocdbt.NodeMagic, inner, pack)
	data := append(append(append([]byte(nil), value...), node...), root...)

	body := append(make([]byte, 16), 0)
	body = append(body, varints(100, 8<<20)...)
	body = append(body, 4)
	if pack {
		body = append(body, 1, 0, 0, 0, 0)
	} else {
		body = append(body, 0)
	}
	body = append(body, oneFile(base+"d/data", len(base))...)
	body = append(body, varints(1, 3)...)
	body = append(body, 1)
	body = append(body, varints(0, len(value)+len(node), len(root), 2, len(node)+len(root), len(value))...)
	body = append(body, make([]byte, 8)...)
	body = append(body, 0) // version_nodes
	for name, content := range map[string][]byte{"manifest.ocdbt": sealed(ocdbt.ManifestMagic, body, pack), base + "d/data": data} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// makeOrbax writes a checkpoint as Orbax does for one process whose database was merged.
func makeOrbax(dir string) error {
	const item = "20/default"
	for i, pack := range []bool{true, false} {
		at := filepath.Join(dir, fmt.Sprint("orbax", i))
		for name, content := range map[string]string{
			"20/_CHECKPOINT_METADATA":                    `{"init_timestamp_nsecs": 1, "commit_timestamp_nsecs": 2}`,
			item + "/_METADATA":                          `{"tree_metadata": {}}`,
			item + "/_sharding":                          "{}",
			item + "/array_metadatas/process_0":          "{}",
			"20/metrics/metrics":                         "{}",
			"20/commit_success.txt":                      "",
			item + "/ocdbt.process_0/array.placeholder_": "x",
		} {
			path := filepath.Join(at, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				return err
			}
		}
		process := filepath.Join(at, item, "ocdbt.process_0")
		if err := database(process, "", pack); err != nil {
			return err
		}
		if err := database(filepath.Join(at, item), "ocdbt.process_0/", pack); err != nil {
			return err
		}
	}
	return nil
}

// orbaxBroken has the ways to break this checkpoint.
var orbaxBroken = map[string]breaking{
	"not merged":           {remove("default/manifest.ocdbt"), "default: manifest.ocdbt is missing: the files of its processes were not merged", ""},
	"not committed":        {with("_CHECKPOINT_METADATA", `{"init_timestamp_nsecs": 1, "commit_timestamp_nsecs": null}`), "_CHECKPOINT_METADATA has no time of a commit", ""},
	"commit cut":           {half("_CHECKPOINT_METADATA"), "_CHECKPOINT_METADATA: it cannot be read", ""},
	"commit empty":         {empty("default/_METADATA"), "default/_METADATA: it is empty", ""},
	"process unfinished":   {remove("default/ocdbt.process_0/manifest.ocdbt"), "default: ocdbt.process_0/manifest.ocdbt is missing: its process has not finished", ""},
	"manifest cut":         {half("default/manifest.ocdbt"), "default: manifest.ocdbt: truncated: it has", ""},
	"manifest of zeros":    {zeros("default/manifest.ocdbt"), "default: manifest.ocdbt: it does not begin like OCDBT", ""},
	"manifest bit":         {change("default/manifest.ocdbt", func(b []byte) []byte { b[20] ^= 1; return b }), "default: manifest.ocdbt: it fails its CRC", ""},
	"manifest is a header": {head("default/manifest.ocdbt", 14), "default: manifest.ocdbt: truncated: it has 14 bytes", ""},
	"no data":              {remove("default/ocdbt.process_0/d"), "default: manifest.ocdbt: its data file ocdbt.process_0/d/data is missing", ""},
	"data cut":             {half("default/ocdbt.process_0/d/data"), "default: manifest.ocdbt: truncated: its data file", ""},
	"data empty":           {empty("default/ocdbt.process_0/d/data"), "default/ocdbt.process_0/d/data: it is empty", ""},
	"data of zeros":        {zeros("default/ocdbt.process_0/d/data"), "default: manifest.ocdbt: node at byte", ""},
	"last byte":            {cut("default/ocdbt.process_0/d/data", 1), "default: manifest.ocdbt: truncated: its data file", ""},
	"bit of a node":        {change("default/ocdbt.process_0/d/data", func(b []byte) []byte { b[len(b)-6] ^= 1; return b }), "default: manifest.ocdbt: node at byte", ""},
	"only the commit":      {all(remove("default"), remove("metrics"), remove("commit_success.txt")), "it has nothing but _CHECKPOINT_METADATA", ""},
	"no arrays":            {all(remove("default/manifest.ocdbt"), remove("default/ocdbt.process_0")), "default: its _METADATA names arrays, but there are none", ""},
	"process missing": {func(dir string) error {
		return os.Rename(filepath.Join(dir, "default/ocdbt.process_0"), filepath.Join(dir, "default/ocdbt.process_1"))
	}, "default: ocdbt.process_0 is missing", ""},
	"item in writing": {func(dir string) error {
		return os.Rename(filepath.Join(dir, "default"), filepath.Join(dir, "default.orbax-checkpoint-tmp-7"))
	}, "it holds default.orbax-checkpoint-tmp-7", ""},
}

// checkDatabase checks a manifest and a data file.
func checkDatabase(manifest, data []byte) error {
	blob := func(b []byte) *file {
		return &file{Ctx: context.Background(), R: bytes.NewReader(b), Size: int64(len(b))}
	}
	return ocdbt.Check(blob(manifest), func(name string) (*file, error) {
		if name != "d/data" {
			return nil, fs.ErrNotExist
		}
		return blob(data), nil
	})
}

// FuzzOCDBT changes the bodies of manifests and nodes, and gives them right checksums. No check may panic or
// use unbounded memory.
func FuzzOCDBT(f *testing.F) {
	dir := f.TempDir()
	if err := database(dir, "", false); err != nil {
		f.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(dir, "manifest.ocdbt"))
	if err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "d/data"))
	if err != nil {
		f.Fatal(err)
	}
	if err := checkDatabase(manifest, data); err != nil {
		f.Fatal(err)
	}
	body := manifest[14 : len(manifest)-4]
	f.Add(body, data[500+14:])
	f.Add(body, []byte{0, 0, 1})
	f.Fuzz(func(t *testing.T, body, node []byte) {
		sealedNode := sealed(ocdbt.NodeMagic, node, false)
		for _, content := range [][]byte{data, sealedNode, node} {
			if err := checkDatabase(sealed(ocdbt.ManifestMagic, body, false), content); err != nil && !flaw.Is(err) {
				t.Errorf("%v is no flaw", err)
			}
		}
		// The manifest has one version. Its root is the node, as a leaf and as an inner node.
		for height := range byte(2) {
			b := append(make([]byte, 17), 1, 1, 4, 0)
			b = append(append(b, oneFile("d/data", 0)...), 1, 1, height)
			b = append(append(b, varints(0, 0, len(sealedNode), 0, 0, 0)...), make([]byte, 9)...)
			if err := checkDatabase(sealed(ocdbt.ManifestMagic, b, false), sealedNode); err != nil && !flaw.Is(err) {
				t.Errorf("%v is no flaw", err)
			}
		}
	})
}
