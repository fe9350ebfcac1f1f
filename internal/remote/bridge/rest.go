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

// End is the name of the last entry of the archive in which a bridge sends output. If this entry is missing,
// the archive is truncated.
const End = "/"

// After the controller has stored the output, it sends one of these bytes. If it sends neither, the host keeps
// everything.
const (
	TakenThese = 't' // remove the output that was sent, and the directory if it is then empty
	TakenAll   = 'a' // remove everything that the agent has left
)

// maxRequest limits the size of a request, in bytes. A request has about a hundred bytes for each rank.
const maxRequest = 1 << 20

// restIdle is how long the bridge waits for a controller that reads and writes nothing. Without the limit, the bridge
// might wait for hours, because sshd may not notice earlier that a connection is cut.
const restIdle = 30 * time.Second

// rest sends the output of a gang that a dead agent has left. It reads one line of JSON from in. The line is an object
// with the names of files and the number of bytes that the controller has of each file. rest writes a tar archive of
// the other bytes to out, and then reads the confirmation of the controller.
func rest(dir, gang string, in io.Reader, out io.Writer) error {
	if !filepath.IsLocal(filepath.FromSlash(gang)) {
		return fmt.Errorf("%q is not the name of a gang", gang)
	}
	request := bufio.NewReader(io.LimitReader(in, maxRequest))
	line, err := request.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	var have map[string]int64
	if err := json.Unmarshal(line, &have); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	spool := filepath.Join(dir, SpoolName, filepath.FromSlash(gang))
	root, err := os.OpenRoot(spool)
	switch {
	case err == nil:
		defer root.Close()
	case errors.Is(err, os.ErrNotExist): // the gang has no output
		have = nil
	default:
		return err
	}
	archive := tar.NewWriter(out)
	var sent []string
	for name, offset := range have {
		done, err := add(archive, root, name, offset)
		if err != nil {
			return err
		}
		if done {
			sent = append(sent, name)
		}
	}
	if err := errors.Join(archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: End, Format: tar.FormatGNU}), archive.Close()); err != nil {
		return err
	}
	confirmed, err := request.ReadByte()
	switch {
	case err == nil && confirmed == TakenAll:
		return os.RemoveAll(dir)
	case err == nil && confirmed == TakenThese:
		for _, name := range sent {
			_ = root.Remove(name) // sweep removes what cannot be removed now
		}
		if !Spooled(dir) {
			return os.RemoveAll(dir)
		}
	}
	return nil
}

// add adds the part of a file from offset on to the archive. It skips a file that does not exist or has fewer bytes.
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

// idleLimit is a reader and writer. It calls end after a time of restIdle without a Read or a Write.
type idleLimit struct {
	end *time.Timer
	in  io.Reader
	out io.Writer
}

func newIdleLimit(in io.Reader, out io.Writer, end func()) idleLimit {
	return idleLimit{time.AfterFunc(restIdle, end), in, out}
}

func (l idleLimit) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	l.end.Reset(restIdle)
	return n, err
}

func (l idleLimit) Write(p []byte) (int, error) {
	n, err := l.out.Write(p)
	l.end.Reset(restIdle)
	return n, err
}
