package home

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gangrun/gangrun/internal/atomicfile"
	"github.com/gangrun/gangrun/internal/safefile"
)

// vitalsName is the live file in a run's directory. It has the newest figures of the ranks while a gang runs.
const vitalsName = "vitals.json"

// maxVitals limits the size of the live file, in bytes.
const maxVitals = 64 << 20

// WriteVitals replaces the live file of the run, vitals.json, which has the newest figures of the ranks while a gang
// runs. It does not force the file to the disk.
func (r Run) WriteVitals(text []byte) error {
	return atomicfile.Replace(filepath.Join(r.Dir, vitalsName), text, 0o600)
}

// ReadVitals returns the content of the live file. It returns nil if there is no live file.
func (r Run) ReadVitals() ([]byte, error) {
	r.refresh()
	text, err := safefile.ReadFile(filepath.Join(r.Dir, vitalsName), maxVitals)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// RemoveVitals removes the live file, if there is one.
func (r Run) RemoveVitals() error {
	err := os.Remove(filepath.Join(r.Dir, vitalsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// refresh makes a network file system look for new files in the run's directory. A network file system may remember for
// a minute that a file does not exist, but asks the server when the directory is opened.
func (r Run) refresh() {
	if dir, err := os.Open(r.Dir); err == nil {
		_ = dir.Close()
	}
}
