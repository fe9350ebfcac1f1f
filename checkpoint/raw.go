package checkpoint

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/naming"
	"github.com/gangrun/gangrun/checkpoint/pickle"
)

const (
	maxAlike = 64 // maximum number of files to which a file is compared
	// maxBegun is the number of bytes at the beginning of a file that are scanned. Among so many random bytes,
	// some are not the opcode of a pickle.
	maxBegun  = 64 << 10
	alikeDirs = 5 // maximum number of directories in which such files are searched
)

// isRaw reports whether a file is no pickle, although it begins like one by chance. This is so if its name is
// not that of a pickle, its first bytes do not continue like a pickle, and most files of the same kind are raw.
// root is the candidate: the file itself, or a directory that has the file.
func isRaw(root, path string, head []byte) bool {
	name := filepath.Base(path)
	if sniff(name, head) != formatPickle || sniff(name, nil) != formatPlain || beginsPickle(path) {
		return false
	}
	raw, other := 0, 0
	for _, like := range alike(root, path) {
		switch head, err := headOf(like); {
		case err != nil || len(head) == 0:
		case sniff(filepath.Base(like), head) == formatPlain:
			raw++
		default:
			other++
		}
	}
	return raw > other
}

// beginsPickle reports whether the first maxBegun bytes of a file can be the beginning of a pickle.
func beginsPickle(path string) bool {
	f, done, err := openFile(context.Background(), path)
	if err != nil {
		return true
	}
	defer done()
	n := min(f.Size, maxBegun)
	read := &counter{r: io.NewSectionReader(f.R, 0, n)}
	err = pickle.Scan(bufio.NewReaderSize(read, 512), pickle.Joblib{})
	return err == nil || err == pickle.ErrJoblib || !flaw.Is(err) || n < f.Size && read.n == n
}

// counter counts the bytes that are read.
type counter struct {
	r io.Reader
	n int64
}

// Read implements io.Reader.
func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

func headOf(path string) ([]byte, error) {
	f, done, err := openFile(context.Background(), path)
	if err != nil {
		return nil, err
	}
	defer done()
	return f.Bytes(0, min(f.Size, 64))
}

// alike returns files of the same kind as the file at path. They are beside this file, or in the directories of
// other steps.
func alike(root, path string) (all []string) {
	within, err := filepath.Rel(root, path)
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir(filepath.Dir(root))
	if err != nil {
		return nil
	}
	if within != "." {
		all = ofKind(root, within, path)
	}
	dirs := 0
	for _, e := range entries {
		other := filepath.Join(filepath.Dir(root), e.Name())
		if other == root || naming.Pattern(e.Name()) != naming.Pattern(filepath.Base(root)) {
			continue
		}
		switch {
		case within == ".":
			all = append(all, other)
		case dirs < alikeDirs:
			dirs++
			all = append(all, ofKind(other, within, path)...)
		}
	}
	return all[:min(len(all), maxAlike)]
}

// ofKind returns the files below dir whose names differ from within only in their numbers. It leaves out the
// file at path.
func ofKind(dir, within, path string) (all []string) {
	files, _ := lookAt(dir)
	for _, m := range files {
		if p := filepath.Join(dir, m.name); p != path && naming.Pattern(m.name) == naming.Pattern(within) {
			all = append(all, p)
		}
	}
	return all[:min(len(all), maxAlike/2)]
}

// judged returns the format that a file seems to have. It takes other files of the same kind into account.
func judged(root, path string, head []byte) string {
	format := sniff(filepath.Base(path), head)
	if format == formatPickle && isRaw(root, path, head) {
		return formatPlain
	}
	return format
}
