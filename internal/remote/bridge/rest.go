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

// End is the name of the archive's last entry: without it something is missing.
const End = "/"

// What a controller says once the rest of a gang's output is safe with it, one byte.
// With anything else, and with nothing, all stays where it is.
const (
	TakenThese = 't' // what has been handed out goes, and all where that was all
	TakenAll   = 'a' // what the agent has left goes
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
	request := bufio.NewReader(io.LimitReader(in, maxRequest))
	line, err := request.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read what is asked for: %w", err)
	}
	var have map[string]int64
	if err := json.Unmarshal(line, &have); err != nil {
		return fmt.Errorf("read what is asked for: %w", err)
	}
	spool := filepath.Join(dir, SpoolName, filepath.FromSlash(gang))
	root, err := os.OpenRoot(spool)
	switch {
	case err == nil:
		defer root.Close()
	case errors.Is(err, os.ErrNotExist): // it was never begun
		have = nil
	default:
		return err
	}
	archive := tar.NewWriter(out)
	var handed []string
	for name, offset := range have {
		done, err := add(archive, root, name, offset)
		if err != nil {
			return err
		}
		if done {
			handed = append(handed, name)
		}
	}
	if err := errors.Join(archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: End, Format: tar.FormatGNU}), archive.Close()); err != nil {
		return err
	}
	word, err := request.ReadByte()
	switch {
	case err == nil && word == TakenAll:
		return os.RemoveAll(dir)
	case err == nil && word == TakenThese:
		for _, name := range handed {
			_ = root.Remove(name) // what stays is swept later
		}
		if !Spooled(dir) {
			return os.RemoveAll(dir)
		}
	}
	return nil
}

// add puts a file into the archive, from offset on; one that is not there, or is
// shorter than that, is left out.
func add(archive *tar.Writer, root *os.Root, name string, offset int64) (done bool, err error) {
	file, err := root.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || offset < 0 || info.Size() < offset {
		return false, err
	}
	size := info.Size() - offset
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: int64(info.Mode().Perm()), Format: tar.FormatGNU}
	if err := archive.WriteHeader(header); err != nil {
		return false, err
	}
	_, err = io.Copy(archive, io.NewSectionReader(file, offset, size))
	return err == nil, err
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
