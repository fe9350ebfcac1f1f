package checkpoint

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/checkpoint/fortran"
	"github.com/gangrun/gangrun/checkpoint/naming"
)

// gromacs makes a checkpoint file of GROMACS.
func gromacs(size int) []byte {
	b := make([]byte, size)
	copy(b, "\x00\x02\x9f\x29\x00\x00\x00\x0b\x00\x00\x00\x072022.5")
	copy(b[size-4:], "\x00\x02\x9f\x2b")
	return b
}

// lammps returns a restart file of LAMMPS. If files is above 0, it returns the base of a restart of that many
// files.
func lammps(files int) []byte {
	b := append([]byte(lammpsMagic), make([]byte, 200)...)
	for _, n := range []int32{44, int32(files), 45, 0, -1} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	if files == 0 {
		b = append(b, make([]byte, 400)...)
	}
	return append(b, lammpsMagic...)
}

// lammpsPart returns one of the files beside a base.
func lammpsPart() []byte { return append(make([]byte, 300), lammpsMagic...) }

// records returns a Fortran file with records of the given lengths.
func records(lengths ...int32) (b []byte) {
	for _, n := range lengths {
		marker := binary.LittleEndian.AppendUint32(nil, uint32(n))
		b = append(append(append(b, marker...), make([]byte, max(n, -n))...), marker...)
	}
	return b
}

const (
	espressoXML = `<?xml version="1.0" encoding="UTF-8"?><qes:espresso Units="Hartree"><output/></qes:espresso>`
	cp2kInput   = " # Version information for this restart file \n &GLOBAL\n   PROJECT_NAME ar\n &END GLOBAL\n &FORCE_EVAL\n   &SUBSYS\n     &COORD\nAr 0 0 0\n     &END COORD\n   &END SUBSYS\n &END FORCE_EVAL\n"
)

// TestPrograms makes the directories that known programs leave. They have files that look newer, by time or by
// number, but from which the program does not restart.
func TestPrograms(t *testing.T) {
	at := func(name string, content []byte, age int) entry { return entry{name: name, content: content, age: age} }
	junk := bytes.Repeat([]byte("\x00\xff data of some kind"), 50)
	text := func(s string) []byte { return []byte(s) }
	cpt, restart := gromacs(16348), lammps(0)
	movecs := records(142, 8, 800)
	hdbm := append([]byte("hdbm v1.0\x00"), junk...)
	with := func(more ...entry) []entry {
		return append(more, at("out/si.save/data-file-schema.xml", text(espressoXML), 3), at("out/si.save/charge-density.dat", records(12, 72), 2), at("out/si.save/Si.UPF", text("<UPF>"), 1))
	}
	under := func(dir string, entries []entry) (out []entry) {
		for _, e := range entries {
			e.name = strings.TrimPrefix(e.name, dir)
			out = append(out, e)
		}
		return out
	}
	for name, test := range map[string]struct {
		entries []entry
		best    string
		step    int64
		skipped []string
	}{
		"GROMACS": {[]entry{at("state.cpt", cpt, 5), at("state_prev.cpt", cpt, 0), at("ener.edr", junk, 0), at("traj.trr", junk, 0), at("traj_comp.xtc", junk, 0),
			at("md.log", junk, 0), at("confout.gro", junk, 0), at("topol.tpr", junk, 0), at("#state.cpt.1#", cpt, 0)}, "state.cpt", -1, nil},
		"GROMACS, cut off":           {[]entry{at("state.cpt", cpt[:9000], 5), at("state_prev.cpt", cpt, 9)}, "state_prev.cpt", -1, []string{"state.cpt: truncated: it does not end like a checkpoint of GROMACS"}},
		"GROMACS, cut in its header": {[]entry{at("state.cpt", cpt[:4], 0), at("state_prev.cpt", cpt, 9)}, "state_prev.cpt", -1, []string{"state.cpt: truncated"}},
		"GROMACS, no checkpoint yet": {[]entry{at("ener.edr", junk, 0), at("traj.part0002.trr", junk, 0), at("topol.tpr", junk, 0), at("md5.gro", junk, 0)}, "", 0, nil},
		"GROMACS, an energy file with a number": {[]entry{at("md7.cpt", cpt, 9), at("md8.edr", junk, 0), at("md9.tpr", junk, 0)},
			"md7.cpt", -1, nil},
		"GROMACS, all of them": {[]entry{at("state.cpt", cpt, 5), at("state_prev.cpt", cpt, 6), at("state_step1000.cpt", cpt, 9), at("state_step500.cpt", cpt, 20)}, "state.cpt", -1, nil},
		"GROMACS, died before the rename": {[]entry{at("state.cpt", cpt, 5), at("state_prev.cpt", cpt, 6), at("state_step3000.cpt", cpt[:100], 0)},
			"state.cpt", -1, []string{"state_step3000.cpt: truncated"}},
		"GROMACS, numbered": {[]entry{at("state_step1000.cpt", cpt, 9), at("state_step3000.cpt", cpt, 1)}, "state_step3000.cpt", 3000, nil},
		"GROMACS, only the one before": {[]entry{at("state_prev.cpt", cpt, 9), at("md.log", junk, 0)},
			"state_prev.cpt", -1, nil},
		"LAMMPS": {[]entry{at("melt.restart.500", restart, 9), at("melt.restart.1000", restart, 5), at("log.lammps", junk, 0), at("dump.2000", text("ITEM: TIMESTEP\n2000\n"), 0),
			at("dump.melt.lammpstrj", junk, 0), at("final.data", junk, 0)}, "melt.restart.1000", 1000, nil},
		"LAMMPS, cut off": {[]entry{at("restart.500", restart, 9), at("restart.1000", restart[:300], 5)}, "restart.500", 500,
			[]string{"restart.1000: truncated: it does not end like a restart file of LAMMPS"}},
		"LAMMPS, in turns": {[]entry{at("restart.a", restart, 9), at("restart.b", restart, 5), at("log.lammps", junk, 0)}, "restart.b", -1, nil},
		"LAMMPS, in turns, cut off": {[]entry{at("restart.a", restart, 9), at("restart.b", restart[:99], 5)}, "restart.a", -1,
			[]string{"restart.b: truncated"}},
		"LAMMPS, no restart yet": {[]entry{at("dump.100", text("ITEM: TIMESTEP\n100\n"), 0), at("dump.200.lj", text("ITEM: UNITS\nlj\n"), 0), at("log.lammps", junk, 0)}, "", 0, nil},
		"LAMMPS, of many files": {[]entry{at("m.100.base.restart", lammps(2), 9), at("m.100.0.restart", lammpsPart(), 9), at("m.100.1.restart", lammpsPart(), 9),
			at("m.50.base.restart", lammps(2), 19), at("m.50.0.restart", lammpsPart(), 19), at("m.50.1.restart", lammpsPart(), 19)}, "m.100.%.restart", 100, nil},
		"LAMMPS, one of many is missing": {[]entry{at("m.100.base.restart", lammps(2), 9), at("m.100.0.restart", lammpsPart(), 9),
			at("m.50.base.restart", lammps(2), 19), at("m.50.0.restart", lammpsPart(), 19), at("m.50.1.restart", lammpsPart(), 19)}, "m.50.%.restart", 50,
			[]string{"m.100.%.restart: m.100.1.restart is missing"}},
		"LAMMPS, one of many is cut off": {[]entry{at("r.base", lammps(1), 9), at("r.0", lammpsPart()[:250], 9)}, "", 0, []string{"r.%: r.0: truncated"}},
		"LAMMPS, the base is cut off":    {[]entry{at("r.base", lammps(1)[:100], 9), at("r.0", lammpsPart(), 9)}, "", 0, []string{"r.base: truncated"}},
		"LAMMPS, a name with base in it": {[]entry{at("database.restart.10", restart, 9)}, "database.restart.10", 10, nil},
		"LAMMPS, through MPI-IO":         {[]entry{at("r.10.mpiio", restart[:300], 9)}, "r.10.mpiio", 10, nil},
		"NWChem": {[]entry{at("h2o.db", hdbm, 5), at("h2o.movecs", movecs, 0), at("h2o.zmat", junk, 0), at("h2o.b", junk, 0), at("h2o.drv.hess", junk, 0), at("h2o.gridpts.7", junk, 0)},
			"h2o.db", -1, nil},
		"NWChem, its orbitals are cut off": {[]entry{at("h2o.db", hdbm, 5), at("h2o.movecs", movecs[:500], 0), at("old.db", hdbm, 9)}, "old.db", -1,
			[]string{"h2o.db: h2o.movecs: truncated: it ends within a record"}},
		"a database of another program": {[]entry{at("optuna.db", text("SQLite format 3\x00"), 0), at("ckpt-20.npy", realFile(t, "fortran.npy"), 9)}, "ckpt-20.npy", 20, nil},
		"Quantum ESPRESSO": {under("out/", with(at("out/si.save/wfc1.dat", records(44, 72, 96, -8, 8), 0), at("out/si.xml", text(espressoXML), 0), at("out/si.wfc1", junk, 0), at("out/si.mix1", junk, 0),
			at("out/_ph0/si.save/data-file-schema.xml", text(espressoXML), 0), at("out/_ph0/si.save/charge-density.dat", records(4), 0))), "si.save", -1, nil},
		"Quantum ESPRESSO, numbered names": {under("out/", with(at("out/si9.save/data-file-schema.xml", text(espressoXML), 30), at("out/si9.save/charge-density.hdf5", hdf5File(0, 0, 99, 0, 99), 30))), "si.save", -1, nil},
		"Quantum ESPRESSO, the description is cut off": {under("out/", append(with(), at("out/si.save/data-file-schema.xml", text(espressoXML[:70]), 0))), "", 0,
			[]string{"si.save: data-file-schema.xml: truncated: it is no whole XML"}},
		"Quantum ESPRESSO, the description is empty of tags": {under("out/", append(with(), at("out/si.save/data-file-schema.xml", text(" "), 0))), "", 0,
			[]string{"si.save: data-file-schema.xml: truncated: it has no XML in it"}},
		"Quantum ESPRESSO, a wave function is cut off": {under("out/", with(at("out/si.save/wfc1.dat", records(44, 72)[:100], 0))), "", 0,
			[]string{"si.save: wfc1.dat: truncated: it ends within a record"}},
		"Quantum ESPRESSO, no density yet": {[]entry{at("si.save/data-file-schema.xml", text(espressoXML), 0), at("si.wfc2", junk, 0), at("si.restart_scf", junk, 0)}, "", 0,
			[]string{"si.save: data-file-schema.xml: there is no charge-density.dat or charge-density.hdf5 beside it"}},
		"Quantum ESPRESSO, nothing yet": {[]entry{at("si.wfc1", junk, 0), at("si.wfc2", junk, 0), at("si.mix1", junk, 0)}, "", 0, nil},
		"CP2K": {[]entry{at("ar-1.restart", text(cp2kInput), 1), at("ar-1.restart.bak-1", text(cp2kInput), 0), at("ar-1.restart.bak-3", text(cp2kInput), 0), at("ar-1.restart.bak-2", text(cp2kInput), 9),
			at("ar-1_10.restart", text(cp2kInput), 5), at("ar-1.ener", junk, 0), at("ar-pos-1.xyz", junk, 0), at("ar-RESTART.wfn", junk, 0)}, "ar-1.restart", -1, nil},
		"CP2K, cut off": {[]entry{at("ar-1.restart", text(cp2kInput[:150]), 1), at("ar-1.restart.bak-1", text(cp2kInput[:90]), 9), at("ar-1.restart.bak-3", text(cp2kInput), 0), at("ar-1.restart.bak-2", text(cp2kInput), 9)},
			"ar-1.restart.bak-2", -1, []string{"ar-1.restart: truncated: it ends within a section", "ar-1.restart.bak-1: truncated: it ends within a section"}},
		"CP2K, the history":       {[]entry{at("ar-1_10.restart", text(cp2kInput), 0), at("ar-1_20.restart", text(cp2kInput), 9)}, "ar-1_20.restart", 20, nil},
		"CP2K, no checkpoint yet": {[]entry{at("ar-1.ener", junk, 0), at("ar-pos-1.xyz", junk, 0)}, "", 0, nil},
		"ExaML": {[]entry{at("ExaML_binaryCheckpoint.T1_9", junk, 9), at("ExaML_binaryCheckpoint.T1_10", junk, 8), at("ExaML_info.T1", junk, 0), at("ExaML_log.T1", junk, 0), at("RAxML_info.b", junk, 0), at("ExaML_TreeFile.T1.RUN.77", junk, 0)},
			"ExaML_binaryCheckpoint.T1_10", 10, nil},
		"ExaML, cut off": {[]entry{at("ExaML_binaryCheckpoint.T1_3", make([]byte, 9000), 9), at("ExaML_binaryCheckpoint.T1_4", make([]byte, 9000), 8), at("ExaML_binaryCheckpoint.T1_5", make([]byte, 8999), 7)},
			"ExaML_binaryCheckpoint.T1_4", 4, []string{"ExaML_binaryCheckpoint.T1_5: suspect: 8999 bytes, ExaML_binaryCheckpoint.T1_4 has 9000 bytes"}},
		"the one before, of any program": {[]entry{at("state.bin", junk, 9), at("state.bin.bak", junk, 0), at("state_prev.bin", junk, 0)}, "state.bin", -1, nil},
		"the one before the one before":  {[]entry{at("s.npy", nil, 9), at("s_prev.npy.old", realFile(t, "fortran.npy"), 0), at("s_prev.npy", nil, 0)}, "s_prev.npy.old", -1, []string{"s.npy: it is empty", "s_prev.npy: it is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectNewest(t, test.entries, test.best, test.step, test.skipped)
		})
	}
}

func TestPredecessor(t *testing.T) {
	for name, want := range map[string]struct {
		of  string
		ago int64
	}{
		"state_prev.cpt": {"state.cpt", 1}, "a-1.restart.bak-3": {"a-1.restart", 3}, "ckpt.pt.old": {"ckpt.pt", 1}, "last.previous.pt": {"last.pt", 1},
		"x.bak": {"x", 1}, "x.BAK2": {"x", 2}, "_prev.pt": {}, "prevent.pt": {}, "state.cpt": {}, "model-old-weights.pt": {}, "a_older.pt": {},
	} {
		of, ago, ok := naming.Predecessor(name)
		if of != want.of || ago != want.ago || ok != (want.of != "") {
			t.Errorf("naming.Predecessor(%q) is %q, %d saves ago (%v), want %q, %d", name, of, ago, ok, want.of, want.ago)
		}
	}
}

func TestRecords(t *testing.T) {
	whole := records(44, 0, -8, 8)
	wrong := bytes.Clone(whole)
	wrong[48]++
	for name, test := range map[string]struct {
		content []byte
		want    string
	}{
		"whole":       {whole, ""},
		"empty":       {nil, "it is empty"},
		"cut":         {whole[:30], "truncated: it ends within a record"},
		"cut between": {whole[:54], "truncated: it ends within the length of a record"},
		"other end":   {wrong, "the record at byte 0 does not end as it begins"},
		"zeros":       {append(records(8), make([]byte, 64)...), "there are zeros instead of records from byte 16 on"},
		"text":        {[]byte("no records at all"), "truncated: it ends within a record"},
	} {
		f := &file{Ctx: t.Context(), R: bytes.NewReader(test.content), Size: int64(len(test.content))}
		if err := fortran.Check(f); !matches(err, test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
