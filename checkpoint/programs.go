package checkpoint

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/fortran"
	"github.com/gangrun/gangrun/checkpoint/naming"
)

// The formats of the programs in the table below, as job.Checkpoint names them.
const (
	formatGROMACS  = "gromacs"
	formatLAMMPS   = "lammps"
	formatNWChem   = "nwchem"
	formatEspresso = "quantum-espresso" // a directory; see espresso.go
	formatCP2K     = "cp2k"
	formatExaML    = "examl"
)

// program describes the checkpoints of one program. To support another program, add a row to the table.
type program struct {
	format string
	// A file that begins with magic is a checkpoint of the program. If the program writes no magic, a file is a
	// checkpoint if its name matches names.
	magic string
	names func() *regexp.Regexp
	// step returns the step in a name, or -1. If step is nil, Step is used.
	step func(name string) int64
	// check returns an error if a checkpoint file is not complete. If check is nil, nothing is checked.
	check func(f *file, path string) error
	// open is true if a truncated file may pass the check.
	open bool
	// others matches the names of files and directories that the program writes and that are no checkpoints. A
	// name that matches names is a checkpoint even if others matches it, too.
	others func() *regexp.Regexp
	// output is the beginning of files that the program writes and that are no checkpoints, whatever their
	// names are. It is "" if there are none.
	output string
}

var programs = []program{{
	format: formatGROMACS,
	magic:  "\x00\x02\x9f\x29",
	step:   numbered(re(`_step(\d+)(?:_prev)?\.cpt$`)), // "md5.cpt" is no step 5
	check:  checkGROMACS,
	others: re(`\.(edr|trr|xtc|tng|tpr|gro|mdp|xvg|ndx)$`),
}, {
	format: formatLAMMPS,
	magic:  lammpsMagic,
	check:  checkLAMMPS,
	others: re(`\.lammpstrj$`),
	output: "ITEM: ", // of a dump
}, {
	format: formatNWChem,
	magic:  "hdbm v1.0",
	step:   numbered(nil),
	check:  checkNWChem,
	open:   true,
}, {
	format: formatEspresso,
	step:   numbered(nil), // "si2.save" is no step 2
	others: re(`\.((wfc|mix|igk|hub)\d+|restart_scf|restart_k|bfgs|update|phsave)$|^_ph\d+$`),
}, {
	format: formatCP2K,
	magic:  " # Version information for this restart file",
	step:   numbered(re(`-\d+_(\d+)\.restart`)), // "water-1.restart" is no step 1
	check:  checkCP2K,
	open:   true,
	others: re(`\.(ener|xyz|dcd|cube|pdb)$|-RESTART\.(wfn|kp)`),
}, {
	format: formatExaML,
	names:  re(`^ExaML_binaryCheckpoint\.`),
	step:   numbered(re(`_(\d+)$`)),
	open:   true,
	others: re(`^(ExaML|RAxML)_`),
}}

// programOf returns the program that has written a checkpoint, by the name of the file and its first bytes. It
// returns nil if no known program has.
func programOf(name string, head []byte) *program {
	for i := range programs {
		p := &programs[i]
		if p.magic != "" && bytes.HasPrefix(head, []byte(p.magic)) || p.names != nil && p.names().MatchString(name) {
			return p
		}
	}
	return nil
}

// programOfFormat returns the program of a format, or nil.
func programOfFormat(format string) *program {
	for i := range programs {
		if programs[i].format == format {
			return &programs[i]
		}
	}
	return nil
}

// besides reports whether a name is one that a known program gives to files or directories that are no
// checkpoints.
func besides(name string) bool {
	if programOf(name, nil) != nil {
		return false
	}
	for _, p := range programs {
		if p.others != nil && p.others().MatchString(name) {
			return true
		}
	}
	return false
}

// isOutput reports whether a file begins like a file that a known program writes and that is no checkpoint.
func isOutput(head []byte) bool {
	for _, p := range programs {
		if p.output != "" && bytes.HasPrefix(head, []byte(p.output)) {
			return true
		}
	}
	return false
}

// stepOf returns the step in the name of a checkpoint of a format.
func stepOf(name, format string) int64 {
	if p := programOfFormat(format); p != nil && p.step != nil {
		return p.step(name)
	}
	return Step(name)
}

// numbered returns a function that returns the step in a name: the number that the first group of in matches.
// If in is nil, the function returns -1 for every name.
func numbered(in func() *regexp.Regexp) func(string) int64 {
	return func(name string) int64 {
		if in == nil {
			return -1
		}
		if found := in().FindStringSubmatch(name); found != nil {
			return naming.Number(found[1])
		}
		return -1
	}
}

// checkGROMACS checks that a checkpoint ends with GROMACS's second magic number.
func checkGROMACS(f *file, _ string) error {
	end, err := f.Bytes(f.Size-4, 4)
	if err != nil {
		return flaw.Truncated("its header", err)
	}
	if string(end) != "\x00\x02\x9f\x2b" {
		return flaw.Flaw("truncated: it does not end like a checkpoint of GROMACS")
	}
	return nil
}

// checkNWChem checks the file of molecular orbitals beside a run's database. NWChem writes this file first. It
// cannot check the database, which does not state its own length.
func checkNWChem(f *file, path string) error {
	vectors, found := strings.CutSuffix(path, ".db")
	if !found {
		return nil
	}
	return checkBeside(f.Ctx, vectors+".movecs", fortran.Check)
}
