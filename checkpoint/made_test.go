package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/hdf5"
	"github.com/gangrun/gangrun/checkpoint/sstable"
)

// safetensorsFile returns a file with a header and the given number of bytes of tensors.
func safetensorsFile(header string, tensors int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, tensors)...)
}

const twoTensors = `{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"I64","shape":[],"data_offsets":[24,32]}}`

func TestSafetensors(t *testing.T) {
	long := binary.LittleEndian.AppendUint64(nil, 1<<40)
	for name, test := range map[string]struct {
		content []byte
		want    string
	}{
		"whole":          {safetensorsFile(twoTensors+"   ", 32), ""},
		"no tensors":     {safetensorsFile(`{"__metadata__":{}}`, 0), ""},
		"empty tensor":   {safetensorsFile(`{"a":{"dtype":"F32","shape":[0,5],"data_offsets":[0,0]}}`, 0), ""},
		"unknown dtype":  {safetensorsFile(`{"a":{"dtype":"F3","shape":[1],"data_offsets":[0,9]}}`, 9), ""},
		"half bytes":     {safetensorsFile(`{"a":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}}`, 2), ""},
		"short":          {safetensorsFile(twoTensors, 31), "truncated: it has 31 bytes of tensors, but its header says 32"},
		"too long":       {safetensorsFile(twoTensors, 33), "truncated: it has 33 bytes"},
		"header cut":     {safetensorsFile(twoTensors, 0)[:50], "truncated: it ends within its header"},
		"length cut":     {safetensorsFile(twoTensors, 0)[:7], "truncated: it ends within its header"},
		"long header":    {long, "its header claims to have 1099511627776 bytes, but may have 100000000"},
		"no JSON":        {safetensorsFile("{nonsense}", 0), "its header is no JSON of tensors"},
		"no object":      {safetensorsFile("[]", 0), "its header is no JSON object"},
		"JSON cut":       {safetensorsFile(twoTensors[:40], 0), "its header is no JSON of tensors"},
		"more JSON":      {safetensorsFile(twoTensors+"{}", 32), "more follows its header"},
		"wrong kind":     {safetensorsFile(`{"a":7}`, 0), "its header is no JSON of tensors"},
		"no place":       {safetensorsFile(`{"a":{"dtype":"F32","shape":[1]}}`, 4), `tensor "a" has no place`},
		"backwards":      {safetensorsFile(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}}`, 1), `tensor "a" has no place`},
		"wrong shape":    {safetensorsFile(`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, 8), `tensor "a" has 8 bytes, which is not what F32 [3] needs`},
		"huge shape":     {safetensorsFile(`{"a":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,0]}}`, 0), `tensor "a" has 0 bytes`},
		"gap":            {safetensorsFile(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), "its tensors overlap or leave gaps"},
		"zeros":          {make([]byte, 100), "its header is no JSON"},
		"like a pickle":  {append([]byte("\x80\x02\x00\x00\x00\x00\x00\x00"), make([]byte, 10)...), "truncated: it ends within its header"},
		"another format": {[]byte("PK\x03\x04aaaaaaaaaaaaaaa"), "its header claims to have"},
	} {
		_, err := checkBytes("model.safetensors", test.content)
		if !matches(err, test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// matches reports whether err is a flaw that begins with want, or none.
func matches(err error, want string) bool {
	if want == "" {
		return err == nil
	}
	return flaw.Is(err) && strings.HasPrefix(err.Error(), want)
}

// hdf5File returns a file with a superblock. The superblock comes after a user block of block bytes. The whole
// file has size bytes.
func hdf5File(version byte, block, size int, flags byte, end uint64) []byte {
	b := make([]byte, size)
	s := b[block:]
	copy(s, hdf5.Magic)
	s[8] = version
	widthAt, flagsAt, endAt := 13, 20, 24+16
	switch version {
	case 1:
		endAt += 4
	case 2, 3:
		widthAt, flagsAt, endAt = 9, 11, 12+16
	}
	s[widthAt], s[flagsAt] = 8, flags
	binary.LittleEndian.PutUint64(s[endAt:], end)
	return b
}

func TestHDF5(t *testing.T) {
	small := hdf5File(2, 0, 200, 0, 200)
	small[9] = 4 // addresses of 4 bytes
	binary.LittleEndian.PutUint32(small[12+8:], 200)
	for name, test := range map[string]struct {
		content []byte
		want    string
	}{
		"version 0":       {hdf5File(0, 0, 2048, 0, 2048), ""},
		"version 1":       {hdf5File(1, 0, 2048, 0, 2048), ""},
		"version 2":       {hdf5File(2, 0, 2048, 0, 2048), ""},
		"version 3":       {hdf5File(3, 0, 2048, 0, 2048), ""},
		"user block":      {hdf5File(0, 1024, 4096, 0, 4096), ""},
		"short addresses": {small, ""},
		"cut":             {hdf5File(0, 0, 2048, 0, 4096), "truncated: it has 2048 bytes, but its superblock says 4096"},
		"grown":           {hdf5File(0, 0, 4096, 0, 2048), "truncated: it has 4096 bytes, but its superblock says 2048"},
		"open":            {hdf5File(0, 0, 2048, 1, 2048), "whoever wrote it has not closed it"},
		"open, too":       {hdf5File(3, 0, 2048, 5, 2048), "whoever wrote it has not closed it"},
		"of the future":   {hdf5File(9, 0, 2048, 0, 2048), "its superblock has the unknown version 9"},
		"tiny":            {[]byte(hdf5.Magic), "truncated: it ends within its superblock"},
		"cut superblock":  {hdf5File(0, 0, 2048, 0, 2048)[:40], "truncated: it ends within its superblock"},
		"zeros":           {make([]byte, 4096), "it has no HDF5 superblock"},
	} {
		if _, err := checkBytes("model.h5", test.content); !matches(err, test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// tableBlock returns a block of a table: entries that share no bytes, the offset of the only restart, the kind
// of compression, and the checksum.
func tableBlock(pairs map[string]string, snappy bool) []byte {
	var b []byte
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		for _, n := range []int{0, len(key), len(pairs[key])} {
			b = binary.AppendUvarint(b, uint64(n))
		}
		b = append(append(b, key...), pairs[key]...)
	}
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint32(b, 1)
	kind := byte(0)
	if snappy {
		b, kind = snap(b), 1
	}
	b = append(b, kind)
	return binary.LittleEndian.AppendUint32(b, sstable.Masked(crc32.Checksum(b, sstable.Castagnoli())))
}

// snap packs b as literals of at most 100 bytes, and a run of zeros as a copy.
func snap(b []byte) []byte {
	out := binary.AppendUvarint(nil, uint64(len(b)))
	for len(b) > 0 {
		n := min(len(b), 100)
		if n <= 60 {
			out = append(out, byte(n-1)<<2)
		} else {
			out = append(out, 60<<2, byte(n-1))
		}
		out, b = append(out, b[:n]...), b[n:]
		if zeros := len(b) - len(bytes.TrimLeft(b, "\x00")); zeros >= 4 && out[len(out)-1] == 0 {
			n := min(zeros, 11)
			out, b = append(out, byte(n-4)<<2|1, 1), b[n:]
		}
	}
	return out
}

// tensorFlow returns the files of a checkpoint with one tensor in each shard. The keys are the parts of the
// names after the prefix.
func tensorFlow(shards int, snappy bool) map[string][]byte { return tensorFlowOf(1, shards, snappy) }

// tensorFlowOf is tensorFlow, but the data of the first shard consists of the byte first.
func tensorFlowOf(first byte, shards int, snappy bool) map[string][]byte {
	files := map[string][]byte{}
	pairs := map[string]string{"": string([]byte{1 << 3, byte(shards), 3<<3 | 2, 2, 1 << 3, 1})}
	for i := range shards {
		data := bytes.Repeat([]byte{first + byte(i)}, 100)
		files[fmt.Sprintf(".data-%05d-of-%05d", i, shards)] = data
		entry := []byte{1 << 3, 1, 2<<3 | 2, 0, 3 << 3, byte(i), 4 << 3, 10, 5 << 3, 80, 6<<3 | 5}
		entry = binary.LittleEndian.AppendUint32(entry, sstable.Masked(crc32.Checksum(data[10:90], sstable.Castagnoli())))
		pairs[fmt.Sprintf("layer%d/weights", i)] = string(entry)
	}
	pairs["sliced"] = string([]byte{1 << 3, 1, 5 << 3, 99, 7<<3 | 2, 0})
	pairs["text"] = string([]byte{1 << 3, 7, 3 << 3, 0, 4 << 3, 0, 5 << 3, 9})
	handle := func(off, size int) string {
		return string(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(off)), uint64(size)))
	}
	index := tableBlock(pairs, snappy)
	meta := len(index)
	index = append(index, tableBlock(nil, false)...)
	top := len(index)
	index = append(index, tableBlock(map[string]string{"zzz": handle(0, meta-5)}, false)...)
	footer := make([]byte, 48)
	copy(footer, handle(meta, top-meta-5)+handle(top, len(index)-top-5))
	binary.LittleEndian.PutUint64(footer[40:], sstable.Magic)
	files[".index"] = append(index, footer...)
	return files
}

// write writes files below dir.
func write(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTensorFlow(t *testing.T) {
	const data = ".data-00001-of-00002"
	for name, test := range map[string]struct {
		damage func(files map[string][]byte)
		want   string
	}{
		"whole":           {func(map[string][]byte) {}, ""},
		"snappy":          {func(files map[string][]byte) { maps.Copy(files, tensorFlow(2, true)) }, ""},
		"no index":        {func(files map[string][]byte) { delete(files, ".index") }, "its index is missing: it was not finished"},
		"index cut":       {func(files map[string][]byte) { files[".index"] = files[".index"][:100] }, "truncated: it does not end like an index"},
		"index empty":     {func(files map[string][]byte) { files[".index"] = nil }, "truncated: it is too short for an index"},
		"index damaged":   {func(files map[string][]byte) { files[".index"][20] ^= 1 }, "a block of its index fails its CRC"},
		"data missing":    {func(files map[string][]byte) { delete(files, data) }, "data file 1 of 2 is missing"},
		"data cut":        {func(files map[string][]byte) { files[data] = files[data][:60] }, "truncated: tensor layer1/weights lies beyond the end of data file 1"},
		"data damaged":    {func(files map[string][]byte) { files[data][50] ^= 1 }, "tensor layer1/weights fails its CRC"},
		"padding damaged": {func(files map[string][]byte) { files[data][5] ^= 1 }, ""},
	} {
		dir := t.TempDir()
		files := tensorFlow(2, false)
		test.damage(files)
		prefixed := map[string][]byte{}
		for suffix, content := range files {
			prefixed["model[1].ckpt-40"+suffix] = content
		}
		write(t, dir, prefixed)
		prefix := filepath.Join(dir, "model[1].ckpt-40")
		for _, path := range []string{prefix, prefix + ".index", prefix + data} {
			c, err := Verify(t.Context(), path)
			if test.want == "" {
				if err != nil || c.Format != formatTensorFlow || c.Path != prefix || c.Step != 40 || c.Bytes != int64(200+len(files[".index"])) {
					t.Errorf("%s: %s is %+v (%v)", name, path, c, err)
				}
				continue
			}
			incomplete, ok := err.(*IncompleteError)
			if !ok || !strings.HasPrefix(incomplete.Reason, test.want) {
				t.Errorf("%s: %s is %+v (%v), want %q", name, path, c, err, test.want)
			}
		}
		found, skipped, err := Newest(t.Context(), dir)
		if good := test.want == ""; err != nil || good != (found.Path == prefix) || good != (len(skipped) == 0) {
			t.Errorf("%s: Newest is %q, skips %v (%v)", name, found.Path, skipped, err)
		}
	}
}

func TestJSON(t *testing.T) {
	for content, want := range map[string]string{
		`{"loss": NaN}` + "\n": formatJSON, "[1]": formatJSON, "12": formatPlain, " \n": formatPlain,
		`{"loss": 1, "x": [`: "", "{": "", "[1}": "",
	} {
		if got, err := checkBytes("state.json", []byte(content)); got != want || (want == "") != flaw.Is(err) {
			t.Errorf("%q is %q (%v), want %q", content, got, err, want)
		}
	}
}
