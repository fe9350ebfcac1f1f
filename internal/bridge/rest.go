package bridge

import (
	"archive/tar"
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// What a controller says once the rest of a gang's output is safe with it, one byte.
// With anything else, and with nothing, all stays where it is.
const (
	TakenGang = 'g' // what the agent has of this gang goes, and all where that was all
	TakenAll  = 'a' // what the agent has left goes
)

// maxRequest bounds a request for the rest of a gang's output, in bytes: some
// hundred for each rank of a host.
const maxRequest = 1 << 20

// restIdle is how long a controller that takes nothing is waited for: sshd may not
// notice for hours that a line is cut.
const restIdle = 30 * time.Second

// rest hands out what an agent that is gone has left of a gang's output: in is one line
// of JSON, an object of names of files and how many bytes of each the controller has;
// out is a tar archive of what is behind those, and in takes the controller's word on
// it.
func rest(dir, gang string, in io.Reader, out io.Writer) error {
	if !filepath.IsLocal(filepath.FromSlash(gang)) {
		return fmt.Errorf("%q is no gang", gang)
	}
	spool := filepath.Join(dir, SpoolName, filepath.FromSlash(gang))
	root, err := os.OpenRoot(spool)
	if err != nil {
		return err
	}
	defer root.Close()
	request := bufio.NewReader(io.LimitReader(in, maxRequest))
	line, err := request.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read what is asked for: %w", err)
	}
	var have map[string]int64
	if err := json.Unmarshal(line, &have); err != nil {
		return fmt.Errorf("read what is asked for: %w", err)
	}
	archive := tar.NewWriter(out)
	for name, offset := range have {
		if err := add(archive, root, name, offset); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	word, err := request.ReadByte()
	switch {
	case err == nil && word == TakenAll:
		return os.RemoveAll(dir)
	case err == nil && word == TakenGang:
		if err := os.RemoveAll(spool); err != nil || Spooled(dir) {
			return err
		}
		return os.RemoveAll(dir)
	}
	return nil
}

// add puts a file into the archive, from offset on; one that is not there, or is
// shorter than that, is left out.
func add(archive *tar.Writer, root *os.Root, name string, offset int64) error {
	file, err := root.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || offset < 0 || info.Size() < offset {
		return err
	}
	size := info.Size() - offset
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: int64(info.Mode().Perm())}); err != nil {
		return err
	}
	_, err = io.Copy(archive, io.NewSectionReader(file, offset, size))
	return err
}

// hasty puts off the end of a process with each read or write that is done.
type hasty struct {
	end *time.Timer
	in  io.Reader
	out io.Writer
}

func newHasty(in io.Reader, out io.Writer, end func()) hasty {
	return hasty{time.AfterFunc(restIdle, end), in, out}
}

func (h hasty) Read(p []byte) (int, error) {
	n, err := h.in.Read(p)
	h.end.Reset(restIdle)
	return n, err
}

func (h hasty) Write(p []byte) (int, error) {
	n, err := h.out.Write(p)
	h.end.Reset(restIdle)
	return n, err
}
