package curve

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// read returns the progress that a Reader finds in the lines of a text.
func read(text string) []string {
	var r Reader
	var found []string
	for line := range strings.Lines(text) {
		if p, ok := r.Line([]byte(line)); ok {
			found = append(found, want(p))
		}
	}
	return found
}

// lammps is a shortened output of LAMMPS.
const lammps = `LAMMPS (29 Sep 2021 - Update 2)
  1 by 1 by 2 MPI processor grid
Created 4000 atoms
Neighbor list info ...
  update every 1 steps, delay 10 steps, check yes
  (1) pair lj/cut, perpetual
Setting up Verlet run ...
  Unit style    : lj
  Current step  : 0
  Time step     : 0.005
Per MPI rank memory allocation (min/avg/max) = 3.722 | 3.722 | 3.722 Mbytes
Step Temp E_pair E_mol TotEng Press 
       0            3   -6.7733681            0   -2.2744931   -3.7033504 
      50    1.6759999   -4.7954324            0   -2.2820611    5.6706654 
WARNING: Bond/angle/dihedral extent > half of periodic box length (src/domain.cpp:936)
     100    1.6461598   -4.7490454            0    -2.280423    5.8703389 
Loop time of 0.537524 on 2 procs for 100 steps with 4000 atoms

Performance: 200921.376 tau/day, 465.096 timesteps/s
Pair    | 0.37507    | 0.37507    | 0.37507    |   0.0 | 69.78
Nlocal:        4000.00 ave        4000 max        4000 min
Histogram: 1 0 0 0 0 0 0 0 0 0
     150    1.6461598   -4.7490454            0    -2.280423    5.8703389 
Setting up Verlet run ...
  Unit style    : lj
  Current step  : 100
  Time step     : 0.005
   Step          Temp          E_pair         E_mol          TotEng         Press     
       100   1.6461598     -4.7490454      0             -2.280423       5.8703389    
       200   nan           -nan            inf           -2.2797117      5.9605555    
`

func TestReader(t *testing.T) {
	noise := strings.Repeat("this is printed by the script\n", maxOther)
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"lammps", lammps, []string{"0/- - -", "50/- - -", "100/- - -", "100/- - -", "200/- - -"}},
		{"gromacs", "           Step           Time\n            100        0.20000\n\n   Energies (kJ/mol)\n           Bond          Angle\n    2.27e+03    1.2e+03\n           Step           Time\n            200        0.40000\n",
			[]string{"100/- - -", "200/- - -"}},
		{"cp2k", " MD| Step number                                                               1\n MD| Conserved quantity [hartree]                            -0.526611108254E-03\n" +
			" MD|                                          Instantaneous             Averages\n MD| Potential energy [hartree]         -0.123877057538E-02  -0.123877057538E-02\n" +
			" MD| Step number                                                               2\n", []string{"1/- - -", "2/- - -"}},
		{"a loss in a column", "step  val_loss train_loss\n10 0.9 0.5\n20 0.9 nan\n30 0.9 -inf\n", []string{"10/- - 0.5", "20/- - nan", "30/- - -inf"}},
		{"iterations", "  Iter\tTrain_Loss\tTime\n1 1.25 3\n1 2 3 4\n2\t1.25\t3\n", []string{"1/- - 1.25", "2/- - 1.25"}},
		{"steps that go down", "Step Temp\n10 1\n5 1\n10 1\n11 1\n", []string{"10/- - -", "11/- - -"}},
		{"too few or too many columns", "Step Temp\n10\n11 1 2\n12 1\n", []string{"12/- - -"}},
		{"a row with words", "Step Temp\n10 hot\n11 1x\n12 1\n", []string{"12/- - -"}},
		{"a fraction", "Step Temp\n1.5 3\n", nil},
		{"negative", "Step Temp\n-1 3\n", nil},
		{"no table", "0 1.5 3\n10 1.5 3\n", nil},
		{"prose about a step", "Step 1: read the data\n1 2\nStep size 0.1\n3 4\nstep by: step\n5 6\n", nil},
		{"a step alone", "Step\n1\n2\n", nil},
		{"rows among other lines", "Step Temp\n10 1\n" + noise + "20 1\n", []string{"10/- - -", "20/- - -"}},
		{"rows behind too many other lines", "Step Temp\n10 1\n" + noise + "one more\n20 1\n", []string{"10/- - -"}},
		{"lines that Parse knows, in a table", "Step Temp\n10 1\nstep 15/20 loss 0.5\n20 1\n", []string{"10/- - -", "15/20 - 0.5", "20/- - -"}},
		{"a step that a script calls current", "Current step: 12\n", []string{"12/- - -"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := read(c.text); !reflect.DeepEqual(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// TestReaderSkip: Skip finds the header of a table, and nothing else.
func TestReaderSkip(t *testing.T) {
	head, rest, _ := strings.Cut(lammps, "WARNING")
	var r Reader
	r.Skip([]byte(head))
	var found []string
	for line := range strings.Lines("WARNING" + rest) {
		if p, ok := r.Line([]byte(line)); ok {
			found = append(found, want(p))
		}
	}
	if want := []string{"100/- - -", "100/- - -", "200/- - -"}; !reflect.DeepEqual(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	for _, skipped := range []string{"", "Step", "Steps are\n", "no Step Temp\n", strings.Repeat("Step 1: load\n", 1000)} {
		var r Reader
		r.Skip([]byte(skipped))
		if r != (Reader{}) {
			t.Errorf("%.20q was taken for a table: %+v", skipped, r)
		}
	}
}

// FuzzReader: a Reader finds the progress that Parse finds in each line, except while LAMMPS describes a run.
// All values are valid.
func FuzzReader(f *testing.F) {
	f.Add([]byte(lammps))
	f.Add([]byte("Step loss\n1 nan\n2 inf\n3 1e999\n9223372036854775807 0\n"))
	f.Add([]byte("Step\tA\n1\t2\nUnit style \nCurrent step 1\nLoop time of 1\n"))
	f.Add([]byte(":::MLLOG {\"metadata\": {\"step\": 1e300, \"epoch_num\": NaN}}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		var r Reader
		setup := bytes.Contains(text, []byte("Unit style"))
		for line := range bytes.Lines(text) {
			p, ok := r.Line(line)
			if q, parsed := Parse(line); parsed && !ok && !setup {
				t.Errorf("%q: not found, yet it is %s", line, want(q))
			}
			if !ok && !reflect.DeepEqual(p, job.Progress{}) {
				t.Errorf("%q: refused, yet with progress %s", line, want(p))
			}
			if p.Step < 0 || p.Total < 0 || p.Epoch < -1 || p.Loss != nil && (math.IsNaN(*p.Loss) || math.IsInf(*p.Loss, 0) || p.LossIs != "") {
				t.Errorf("%q: %s", line, want(p))
			}
		}
		r.Skip(text)
		if !bytes.Equal(text, before) {
			t.Fatal("the text was changed")
		}
	})
}

func BenchmarkReader(b *testing.B) {
	var text bytes.Buffer
	text.WriteString("Step Temp E_pair E_mol TotEng Press\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "%8d    1.6759999   -4.7954324            0   -2.2820611    5.6706654\n", i)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		var r Reader
		for line := range bytes.Lines(text.Bytes()) {
			r.Line(line)
		}
	}
}
