package checkpoint

import (
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/gangrun/gangrun/checkpoint/flaw"
)

// espressoSchema is the file in every directory from which Quantum ESPRESSO can restart.
const espressoSchema = "data-file-schema.xml"

var (
	// espressoData matches the program's files in Fortran's format. If the program was built with HDF5, it
	// writes .hdf5 files instead.
	espressoData = re(`^(charge-density|spin-polarization|ekin-density|wfc(up|dw)?\d+)\.dat$`)
	density      = []string{"charge-density.dat", "charge-density.hdf5"}
)

// checkEspresso checks that the description of a calculation is complete XML, and that there is a file with the
// charge density.
func (d *directory) checkEspresso(m member) error {
	if m.size > maxIndex {
		return flaw.New("it has %d bytes, which is too big for a description", m.size)
	}
	f, err := d.pool.Get(filepath.Join(d.root, m.name))
	if err != nil {
		return err
	}
	if err := checkXML(f); err != nil {
		return err
	}
	dir := filepath.Dir(m.name)
	for _, name := range density {
		if d.files.has(filepath.Join(dir, name)) {
			return nil
		}
	}
	return flaw.Flaw("there is no charge-density.dat or charge-density.hdf5 beside it")
}

// checkXML checks that every tag of an XML file is closed.
func checkXML(f *file) error {
	decoder := xml.NewDecoder(f.From(0))
	decoder.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	elements := 0
	for {
		token, err := decoder.Token()
		switch unread := new(fs.PathError); {
		case err == io.EOF && elements > 0:
			return nil
		case err == io.EOF:
			return flaw.Flaw("truncated: it has no XML in it")
		case f.Ctx.Err() != nil, errors.As(err, &unread):
			return err
		case err != nil:
			return flaw.New("truncated: it is no whole XML: %v", err)
		}
		if _, ok := token.(xml.StartElement); ok {
			elements++
		}
	}
}
