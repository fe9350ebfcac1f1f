package diagnose

import (
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/diagnose/message"
	"github.com/gangrun/gangrun/internal/job"
)

const (
	lammpsError = "  1 by 1 by 2 MPI processor grid\nERROR: Unrecognized pair style 'foo' (src/force.cpp:278)\nLast command: pair_style foo"
	qeError     = "     Reading input from si.in\n\n %%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%\n     Error in routine  read_namelists (1):\n" +
		"      bad line in namelist &electrons: \" conv_thrr=1d-8\" (error could be in the previous line)\n %%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%\n\n     stopping ..."
	qeText = `Error in routine read_namelists (1): bad line in namelist &electrons: " conv_thrr=1d-8" (error could be in the previous line)`
	// aborting is what mpirun prints after MPI_Abort.
	aborting = "--------------------------------------------------------------------------\nMPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\nwith errorcode 1.\n\n" +
		"NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.\nYou may or may not see output from other processes, depending on\nexactly when Open MPI kills them.\n" +
		"--------------------------------------------------------------------------"
	mpichAborting = "Abort(1) on node 0 (rank 0 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 1) - process 0"
)

var abort = job.Exit{Code: 1, Aborted: true}

// TestOwnMessages checks the messages that programs print, and the texts of the causes.
func TestOwnMessages(t *testing.T) {
	for name, c := range map[string]struct{ text, want, artefact string }{
		"lammps":                 {lammpsError, "incorrect-inputs ERROR: Unrecognized pair style 'foo' (src/force.cpp:278); Last command: pair_style foo", ""},
		"lammps, all ranks":      {"ERROR: Lost atoms: original 4000 current 3999 (src/thermo.cpp:438)\nLast command: run 100", "semantic-error ERROR: Lost atoms: original 4000 current 3999 (src/thermo.cpp:438); Last command: run 100", ""},
		"lammps, no script":      {"ERROR on proc 0: Cannot open input script in.melt: No such file or directory (src/lammps.cpp:520)\nLast command: (unknown)", "incorrect-inputs ERROR on proc 0: Cannot open input script in.melt: No such file or directory (src/lammps.cpp:520)", "in.melt"},
		"quantum espresso":       {qeError, "incorrect-inputs " + qeText, ""},
		"quantum espresso, text": {strings.ReplaceAll(qeError, "bad line in namelist &electrons: \" conv_thrr=1d-8\" (error could be in the previous line)", "the charge density is wrong"), "semantic-error Error in routine read_namelists (1): the charge density is wrong", ""},
		"gromacs": {"-------------------------------------------------------\nProgram:     gmx mdrun, version 2022.5\nSource file: src/gromacs/commandline/cmdlineparser.cpp (line 271)\nMPI rank:    0 (out of 2)\n\n" +
			"Error in user input:\nInvalid command-line options\n  In command-line option -s\n    File 'nofile.tpr' does not exist or is not accessible.\n\n" +
			"For more information and tips for troubleshooting, please check the GROMACS\nwebsite at http://www.gromacs.org/Documentation/Errors\n-------------------------------------------------------",
			"incorrect-inputs Error in user input: Invalid command-line options In command-line option -s File 'nofile.tpr' does not exist or is not accessible.", "nofile.tpr"},
		"gromacs, fatal": {"-------------------------------------------------------\nProgram:     gmx mdrun, version 2022.5\n\nFatal error:\nThere is no domain decomposition for 7 ranks that is compatible with the\ngiven box and a minimum cell size of 1.2 nm\n\n" +
			"For more information and tips\n-------------------------------------------------------", "incorrect-inputs Fatal error: There is no domain decomposition for 7 ranks that is compatible with the given box and a minimum cell size of 1.2 nm", ""},
		"nwchem":           {" ------------------------------------------------------------------------\n There is an error in the specified basis set\n ------------------------------------------------------------------------\n For more information see the NWChem manual at https://x/wiki\n\n\n For further details see manual section:", "incorrect-inputs There is an error in the specified basis set", ""},
		"R":                {"Error in solve.default(a) : \n  Lapack routine dgesv: system is exactly singular: U[1,1] = 0\nCalls: solve -> solve.default\nExecution halted", "traceback Error in solve.default(a) : Lapack routine dgesv: system is exactly singular: U[1,1] = 0", ""},
		"R, a file":        {"Error in file(file, \"rt\") : cannot open file 'data/x.csv': No such file or directory\nExecution halted", "incorrect-inputs Error in file(file, \"rt\") : cannot open file 'data/x.csv': No such file or directory", "data/x.csv"},
		"FreeFem":          {" Error line number 3, in file job.edp, before  token plott\n current line = 3", "incorrect-inputs Error line number 3, in file job.edp, before token plott", ""},
		"OpenFOAM":         {"\n\n--> FOAM FATAL IO ERROR: (openfoam-2206)\nEntry 'deltaTT' not found in dictionary \"/case/system/controlDict\"\n\nFOAM exiting", "", ""},
		"cp2k":             {cp2kError, "semantic-error CPASSERT failed qs_scf.F:246", ""},
		"petsc":            {"[0]PETSC ERROR: --------------------- Error Message --------------------------------------------------------------\n[0]PETSC ERROR: Object is in wrong state\n[0]PETSC ERROR: Matrix is missing diagonal entry 0", "semantic-error [0]PETSC ERROR: Object is in wrong state; Matrix is missing diagonal entry 0", ""},
		"hpcc":             {"HPL ERROR from process # 0, on line 331 of function HPL_pdinfo:\n>>> cannot open file hpccinf.txt <<<", "incorrect-inputs HPL ERROR from process # 0, on line 331 of function HPL_pdinfo: >>> cannot open file hpccinf.txt <<<", "hpccinf.txt"},
		"ior":              {"ior ERROR: open64(\"/nowhere/testfile\", 66, 0664) failed, errno 2, No such file or directory (aiori-POSIX.c:592)", "incorrect-inputs ior ERROR: open64(\"/nowhere/testfile\", 66, 0664) failed, errno 2, No such file or directory (aiori-POSIX.c:592)", ""},
		"ior, an option":   {"ERROR: block size must be a multiple of transfer size, (ior.c:1520)", "incorrect-inputs ERROR: block size must be a multiple of transfer size, (ior.c:1520)", ""},
		"ior, old":         {"ior ERROR: block size must not be smaller than transfer size, errno 0, Success (ior.c:2295)", "incorrect-inputs ior ERROR: block size must not be smaller than transfer size, errno 0, Success (ior.c:2295)", ""},
		"output is there":  {"ERROR: output directory /out/run1 already exists", "output-error ERROR: output directory /out/run1 already exists", "/out/run1"},
		"output is kept":   {"ERROR: the mesh is empty; output directory /out/run1 already exists and is appended to", "semantic-error ERROR: the mesh is empty; output directory /out/run1 already exists and is appended to", ""},
		"nwchem, no file":  {nwchemNoFile, "incorrect-inputs Attempting to read a basis set from a non-existing file: /usr/share/nwchem/libraries/sto-99g", "/usr/share/nwchem/libraries/sto-99g"},
		"STOP":             {"STOP the grid has no points", "semantic-error STOP the grid has no points", ""},
		"ERROR STOP":       {"ERROR STOP unknown keyword NSTEPP\n\nError termination. Backtrace:\n#0  0x7f in main", "incorrect-inputs ERROR STOP unknown keyword NSTEPP", ""},
		"a message, STOP":  {"Error: the grid has no points\nSTOP 1", "semantic-error Error: the grid has no points", ""},
		"scalapack":        {"{    0,    0}:  On entry to PDGETRF parameter number    3 had an illegal value", "incorrect-inputs {    0,    0}: On entry to PDGETRF parameter number 3 had an illegal value", ""},
		"a logger":         {"2024-05-01 12:00:00,123 main ERROR: the mesh is empty", "semantic-error 2024-05-01 12:00:00,123 main ERROR: the mesh is empty", ""},
		"several":          {"ERROR: cannot open potential.dat\nERROR: initialization failed\nERROR: exiting", "incorrect-inputs ERROR: cannot open potential.dat; initialization failed; exiting", "potential.dat"},
		"an empty one":     {"Error: the mesh is empty\nwriting the log\nFATAL: aborting because of the previous error", "semantic-error Error: the mesh is empty", ""},
		"a full disk":      {"ERROR: cannot write restart.10: No space left on device", "disk-full ERROR: cannot write restart.10: No space left on device", ""},
		"a link at last":   {"ERROR: the grid has no points\n   detail 0\n   detail 1\n   detail 2\nsee http://docs.example.org/grid", "semantic-error ERROR: the grid has no points", ""},
		"a file in detail": {"ERROR: the grid cannot be built\n   cannot open file a/grid.dat\n   detail 1", "incorrect-inputs ERROR: the grid cannot be built", "a/grid.dat"},
	} {
		for printed, end := range map[string]job.Exit{"a plain exit": failed, "MPI_Abort": abort, "abort()": {Signal: 6}} {
			for _, say := range []func(*gang, string) *gang{
				func(g *gang, text string) *gang { return g.prints(0, 10, text) },
				func(g *gang, text string) *gang { return g.says(0, 10, text) },
			} {
				got := Diagnose(say(four(), c.text).exit(0, 10.1, end).exit(1, 10.2, stopped).Evidence)
				sane(t, got)
				category, text, _ := strings.Cut(c.want, " ")
				if c.want == "" {
					category, text = "incorrect-inputs", "--> FOAM FATAL IO ERROR: (openfoam-2206) Entry 'deltaTT' not found in dictionary \"/case/system/controlDict\""
				}
				if string(got.Category) != category || got.Text != "rank 0 on h1: "+strings.Join(strings.Fields(text), " ") || got.Artefact != c.artefact || got.Retry != got.Category.Action() {
					t.Errorf("%s, %s: got %s (%s), artefact %q: %s", name, printed, got.Category, got.Signature, got.Artefact, got.Text)
				}
			}
		}
	}
}

const nwchemNoFile = ` Attempting to read a basis set from a  non-existing file:
 /usr/share/nwchem/libraries/sto-99g                                            
 ------------------------------------------------------------------------
 bas_tag_lib: failed opening basis file                   0
 ------------------------------------------------------------------------
 ------------------------------------------------------------------------
  current input line : 
    12: task scf optimize
 ------------------------------------------------------------------------
 ------------------------------------------------------------------------
 There is an error in the specified basis set
 ------------------------------------------------------------------------
 For more information see the NWChem manual at https://github.com/nwchemgit/nwchem/wiki


 For further details see manual section:`

// examlExists is what ExaML prints if an earlier run has left its output.
const examlExists = "\nThis is ExaML FINE-GRAIN MPI Process Number: 0\nExaML output files with the run ID <run1> already exist \nin directory /data/tree/ ...... exiting"

const cp2kError = ` *******************************************************************************
 *   ___                                                                       *
 *  /   \                                                                      *
 * [ABORT]                                                                     *
 *  \___/                     CPASSERT failed                                  *
 *    |                                                                        *
 *  O/|                                                                        *
 * /| |                                                                        *
 * / \                                                       qs_scf.F:246 *
 *******************************************************************************`

// TestAnnounces checks which lines announce an error, and which only contain such a word.
func TestAnnounces(t *testing.T) {
	for text, want := range map[string]bool{
		"ERROR: x": true, "Error: x": true, "error: x": true, "fatal: x": true, "Fatal error: x": true, "FATAL ERROR: x": true, "prog: error: x": true,
		"[0] ERROR: x": true, "*** ERROR *** x": true, "ERROR in module grid": true, "Error opening x.dat": true, "ERROR - x": true, "[ERROR] x": true,
		"Error (12): x": true, "ERROR 12: x": true, "Input error: x": true, "An internal error occurred": true, "critical: x": true, "Error, x": true,
		"main.c:33: fatal error: x": true, "  Error in routine a (1):": true, "<rank 0> ABORT: x": true, "Error: 3 atoms are lost": true, "STOP in READPP": true,

		"error: 0.0012": false, "Error = 1e-3": false, "relative error: 1e-3": false, "Error estimate: x": false, "0 errors": false, "no error: fine": false,
		"Retrying after error: timeout": false, "error rate: 3 %": false, "step 3 error 0.1 loss 2": false, "train error: 0.3": false, "Error: 0": false,
		"error_norm: x": false, "Error bars: none": false, "WARNING: error: x": false, "Error: x, ignored": false, "Error: x, continuing": false,
		"the word error is here": false, "all errors are logged": false, "STOP 1": false, "STOP": false, "stop here": false, "": false, "Error tolerance: tight": false,
		"fatalities: 3": false, "MPI_ABORT was invoked on rank 0": false, "Abort(1) on node 0 (rank 0 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 1) - process 0": false,
		"[h1:123] *** An error occurred in MPI_Recv": false, "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED": false, "srun: error: n1: task 3: Exited with exit code 1": false,
		"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES": false, "[1795275974.349863] [n1:11111:0]  mm_posix.c:219  UCX  ERROR   open failed": false,
		"max error: 3e-5 at 12": false, "Step Temp Error": false, "Final error: small": false, "error: nan": false, "mpirun: error: x": false,
	} {
		if got := message.Announces(text); got != want {
			t.Errorf("message.Announces(%q) = %v", text, got)
		}
	}
}

// TestContinuedLine checks that a line that matches a rule is quoted together with the line that ends its sentence.
func TestContinuedLine(t *testing.T) {
	const arm = "[0] ARMCI Error: 0:bas_tag_lib: failed opening basis file:"
	for _, c := range []struct {
		name                      string
		evidence                  *gang
		signature, text, artefact string
	}{
		{"examl", four().prints(0, 10, examlExists).exit(0, 10.1, job.Exit{Code: 255}), "output-exists",
			"rank 0 on h1: ExaML output files with the run ID <run1> already exist in directory /data/tree/ ...... exiting", "/data/tree/"},
		{"examl goes on", four().prints(0, 10, examlExists).prints(0, 11, strings.Repeat("the weather is fine\n", 30)).exit(0, 20, failed), "exit-code", "", ""},
		{"output that a program overwrites", four().prints(0, 10, "output file /data/x already exists\nand is overwritten").prints(0, 10, "output file y already exists, overwriting it").exit(0, 10.1, kill), "sigkill", "", ""},
		{"a line that does not go on", four().prints(0, 10, "the output directory /data/tree already exists").exit(0, 10.1, failed), "output-exists",
			"rank 0 on h1: the output directory /data/tree already exists", "/data/tree"},
		{"nwchem, stderr too", four().prints(0, 10, nwchemNoFile).says(0, 10.1, arm+"\n"+aborting).exit(0, 10.2, abort), "missing-file",
			"rank 0 on h1: Attempting to read a basis set from a non-existing file: /usr/share/nwchem/libraries/sto-99g", "/usr/share/nwchem/libraries/sto-99g"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Diagnose(c.evidence.Evidence)
			sane(t, got)
			if got.Signature != c.signature || c.text != "" && got.Text != c.text || got.Artefact != c.artefact {
				t.Errorf("got %s, artefact %q: %s", got.Signature, got.Artefact, got.Text)
			}
		})
	}
}

// TestWhoSpoke checks that the rank is blamed which said why the gang ended. A message is no cause if it was not the
// last word of a rank that ended itself.
func TestWhoSpoke(t *testing.T) {
	for _, c := range []struct {
		name      string
		evidence  *gang
		signature string
		rank      int
		text      string
	}{
		{"MPI_Abort after a message, with mpirun's words", four().prints(0, 10, lammpsError).lines(job.SourceStderr, "h1", 0, "mpirun.log", 10.1, aborting).exit(0, 10.1, abort).exit(1, 10.2, stopped),
			"program-input", 0, "ERROR: Unrecognized pair style 'foo'"},
		{"mpirun's words were seen first, and are no rank's", four().lines(job.SourceStderr, "h1", -1, "mpirun.log", 9.99, aborting).prints(0, 10, lammpsError).exit(0, 10.1, abort).exit(1, 10.2, stopped),
			"program-input", 0, "ERROR: Unrecognized pair style 'foo'"},
		{"MPI_Abort after a message, with MPICH's words", four().prints(0, 10, qeError).says(0, 10.1, mpichAborting).exit(0, 10.1, abort).exit(1, 10.2, stopped), "program-input", 0, qeText},
		{"a bare MPI_Abort", four().exit(0, 10.1, abort), "mpi-abort", 0, "it called MPI_Abort and ended with code 1"},
		{"MPI_Abort after words that announce nothing", four().prints(0, 10, "the grid has no points\n").says(0, 10, mpichAborting).exit(0, 10.1, abort), "mpi-abort", 0, "; its last words are \"the grid has no points\""},
		{"Last command is never what is quoted", four().prints(0, 10, "the grid has no points\nLast command: grid 0").exit(0, 10.1, failed), "exit-code", 0, "; its last words are \"the grid has no points\""},
		{"a silent rank was seen first", four().exit(1, 10, failed).prints(0, 10.01, lammpsError).exit(0, 10.02, failed), "program-input", 0, ""},
		{"a silent rank called MPI_Abort first", four().exit(1, 10, abort).prints(0, 10.01, qeError).exit(0, 10.02, abort), "program-input", 0, ""},
		{"a silent rank left with code 0 first", four().exit(1, 10, job.Exit{Fault: "left the others"}).prints(0, 10.01, qeError).exit(0, 10.02, abort), "program-input", 0, ""},
		{"all ended with 1, one said why", four().exit(3, 10, failed).exit(1, 10.01, failed).says(2, 10.01, "Error: the mesh is empty").exit(2, 10.02, failed).exit(0, 10.03, failed), "program-error", 2, ""},
		{"an exception instead of a message", four().exit(1, 10, failed).says(0, 10.01, raise("RuntimeError: the plan says no")).exit(0, 10.02, failed), "uncaught-exception", 0, ""},
		{"gangrun ended the rank that had spoken", four().prints(0, 9.9, lammpsError).exit(1, 10, failed).exit(0, 10.02, stopped), "program-input", 0, ""},
		{"gangrun ended the rank while it spoke", four().exit(1, 10, abort).prints(0, 10.1, lammpsError).exit(0, 10.2, stopped), "program-input", 0, ""},
		{"a rank complains of being ended", four().exit(1, 10, failed).says(0, 10.01, "ERROR: somebody sent SIGTERM").exit(0, 10.02, stopped), "exit-code", 1, ""},
		{"a message of a rank that gangrun ended explains no kill", four().says(0, 9.9, "ERROR: the mesh is coarse").exit(1, 10, kill).exit(0, 10.02, stopped), "sigkill", 1, ""},
		{"nor a crash", four().says(0, 9.9, "ERROR: the mesh is coarse").exit(1, 10, job.Exit{Signal: 11}).exit(0, 10.02, stopped), "sigsegv", 1, ""},
		{"a message much later is not why a silent rank ended", four().exit(1, 10, failed).says(0, 15, "ERROR: the mesh is empty").exit(0, 15.1, failed), "exit-code", 1, ""},
		{"a message about a peer is an echo", four().exit(1, 10, failed).says(0, 10.01, "ERROR: lost connection to rank 1").exit(0, 10.02, failed), "exit-code", 1, ""},
		{"killed after a message", four().says(1, 10, "ERROR: the mesh is coarse").exit(1, 10.1, kill), "sigkill", 1, ""},
		{"a segmentation fault after a message", four().prints(1, 10, lammpsError).exit(1, 10.1, job.Exit{Signal: 11}), "sigsegv", 1, ""},
		{"out of memory after a message", four().kernel("h1", 10, "Out of memory: Killed process 1001 (lmp)").prints(1, 9.9, lammpsError).exit(1, 10.1, kill), "oom-killer", 1, ""},
		{"work went on after it", four().prints(1, 10, "ERROR: no cache\nstep 1 loss 0.3").exit(1, 10.1, failed), "exit-code", 1, "its last words are \"step 1 loss 0.3\""},
		{"a table went on after it", four().prints(1, 10, "ERROR: no cache\n  100  0.3  1.5e-3  2").exit(1, 10.1, failed), "exit-code", 1, ""},
		{"CP2K went on after it", four().prints(1, 10, "ERROR: no cache\nMD| Step number                       3").exit(1, 10.1, failed), "exit-code", 1, ""},
		{"work went on on stdout", four().says(1, 10, "ERROR: no cache").prints(1, 12, "Epoch 3").exit(1, 12.1, failed), "exit-code", 1, ""},
		{"much was printed after it", four().prints(1, 10, "ERROR: no cache\n"+strings.Repeat("the weather is fine\n", 40)).exit(1, 10.1, failed), "exit-code", 1, ""},
		{"the rank lived on for long", four().prints(1, 10, "ERROR: no cache").exit(1, 1000, failed), "exit-code", 1, ""},
		{"metrics", four().prints(1, 10, "relative error = 0.001\nerror: 0.0012\n0 errors").exit(1, 10.1, failed), "exit-code", 1, ""},
		{"an exception tells more", four().says(1, 10, raise("KeyError: 'a'")).prints(1, 10, "ERROR: the training failed").exit(1, 10.1, failed), "python-key-error", 1, ""},
		{"a rule's line beside it tells more", four().says(1, 10, "write restart.1: No space left on device").prints(1, 10.1, "ERROR: cannot write the restart").exit(1, 10.2, failed), "no-space", 1, ""},
		{"a line long before it does not", four().says(1, 1, "run.sh: line 3: module: command not found").prints(1, 10.1, lammpsError).exit(1, 10.2, failed), "program-input", 1, ""},
		{"MPI's own error is no message", four().says(1, 10, "[h1:1] *** An error occurred in MPI_Recv\n[h1:1] *** MPI_ERR_TRUNCATE: message truncated").exit(1, 10.2, abort), "mpi-truncate", 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Diagnose(c.evidence.Evidence)
			sane(t, got)
			if got.Signature != c.signature || got.Rank != c.rank || !strings.Contains(got.Text, c.text) || strings.Contains(got.Text, `"Last command`) {
				t.Errorf("got %s, rank %d, want %s, rank %d: %s", got.Signature, got.Rank, c.signature, c.rank, got.Text)
			}
		})
	}
}

func TestEvidenceOfMessage(t *testing.T) {
	var texts []string
	for _, l := range Diagnose(four().prints(0, 10, qeError).exit(0, 10.1, abort).Evidence).Evidence {
		texts = append(texts, strings.TrimSpace(l.Text))
	}
	if len(texts) != 2 || !strings.HasPrefix(texts[0], "Error in routine") || !strings.HasPrefix(texts[1], "bad line in namelist") {
		t.Errorf("evidence %q", texts)
	}
	lines := Diagnose(four().prints(0, 10, lammpsError).exit(0, 10.1, abort).Evidence).Evidence
	if last := lines[len(lines)-1]; last.Text != "ERROR: Unrecognized pair style 'foo' (src/force.cpp:278)" || last.Source != job.SourceStdout || last.Line != 2 {
		t.Errorf("the decisive line is %+v", last)
	}
}

// TestAfter checks the lines of a cause that follow the decisive line, up to the end of the output or up to a limit.
func TestAfter(t *testing.T) {
	message := "ERROR: the grid has no points\n   detail 0\n   detail 1\nsee http://docs.example.org/grid\n\n"
	truncated := "Abort(268574734) on node 1 (rank 1 in comm 0): Fatal error in internal_Recv: Message truncated, error stack:\ninternal_Recv(127): MPI_Recv(buf=0x7ffd, count=4, MPI_CHAR) failed"
	for name, c := range map[string]struct {
		text  string
		first string
		lines int
	}{
		"a message":               {message, "see http://docs.example.org/grid", 1},
		"MPICH's stack":           {truncated, "internal_Recv(127): MPI_Recv(buf=0x7ffd, count=4, MPI_CHAR) failed", 1},
		"Open MPI's abort":        {aborting, "with errorcode 1.", 6},
		"much more":               {raise("KeyError: 'a'") + strings.Repeat("\nclosing", 50), "closing", afterLines},
		"nothing":                 {raise("KeyError: 'a'") + "\n\n", "", 0},
		"an end without a reason": {"the grid has no points", "", 0},
	} {
		after := Diagnose(four().says(0, 10, c.text).exit(0, 10.1, abort).Evidence).After
		if len(after) != c.lines || len(after) > 0 && after[0].Text != c.first {
			t.Errorf("%s: got %d lines: %+v", name, len(after), after)
		}
	}
}

// TestTwiceInOneLog checks that two copies of a text, one of them printed by mpirun and one in mpirun's log, are not
// mixed.
func TestTwiceInOneLog(t *testing.T) {
	const text = "[h1:1] *** An error occurred in MPI_Recv\n[h1:1] *** MPI_ERR_TRUNCATE: message truncated\n[h1:1] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,"
	g := four().lines(job.SourceStderr, "h1", 0, "mpirun.log", 10, text)
	for i := range g.Lines {
		g.Lines[i].Line = 0
	}
	c := Diagnose(g.lines(job.SourceStderr, "h1", 0, "mpirun.log", 10.001, text).exit(0, 10.1, abort).Evidence)
	if c.Signature != "mpi-truncate" || len(c.Evidence) != 2 || len(c.After) != 1 {
		t.Errorf("%s, evidence %+v, after %+v", c.Signature, c.Evidence, c.After)
	}
}

// TestMessageInLog checks a log of mpirun alone. The message is the cause, and mpirun names its rank.
func TestMessageInLog(t *testing.T) {
	lines, err := readLog("job.log", strings.NewReader(lammpsError+"\n"+aborting+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := Diagnose(job.Evidence{Lines: lines})
	sane(t, got)
	if got.Signature != "program-input" || got.Rank != 0 || got.Confidence > 0.7 {
		t.Errorf("%s, rank %d, confidence %v: %s", got.Signature, got.Rank, got.Confidence, got.Text)
	}
}

func TestUnclear(t *testing.T) {
	line := func(source job.Source, text string) job.Line {
		return job.Line{Source: source, Rank: 1, Time: at(10), Text: text}
	}
	exit := func(e job.Exit) job.Exit {
		e.Rank, e.Status, e.Time = 1, job.Exited, at(10.1)
		if e.Signal > 0 {
			e.Status = job.Signalled
		}
		return e
	}
	echo := "RuntimeError: [../gloo/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:50120"
	for name, c := range map[string]struct {
		exit  job.Exit
		lines []job.Line
		want  bool
	}{
		"silence":              {failed, nil, true},
		"a silent MPI_Abort":   {abort, nil, true},
		"chatter":              {failed, []job.Line{line(job.SourceStdout, "step 1")}, true},
		"an echo":              {failed, []job.Line{line(job.SourceStderr, "before"), line(job.SourceStderr, echo), line(job.SourceStderr, "  ")}, true},
		"an echo before":       {failed, []job.Line{line(job.SourceStderr, echo), line(job.SourceStderr, "ValueError: x")}, false},
		"a message":            {failed, []job.Line{line(job.SourceStdout, "ERROR: the mesh is empty")}, false},
		"a message, MPI_Abort": {abort, []job.Line{line(job.SourceStdout, "ERROR: the mesh is empty"), line(job.SourceStderr, mpichAborting)}, false},
		"a kill":               {kill, nil, false},
		"a crash":              {job.Exit{Signal: 11}, nil, false},
	} {
		if got := Unclear(exit(c.exit), c.lines); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}

// numpyAdvice returns NumPy's report that one of its own modules cannot be imported.
func numpyAdvice(reason string) string {
	return `Traceback (most recent call last):
  File "/usr/lib/python3/dist-packages/numpy/core/__init__.py", line 23, in <module>
    from . import multiarray
ImportError: ` + reason + `

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/home/ana/job/train.py", line 1, in <module>
    import numpy as np
  File "/usr/lib/python3/dist-packages/numpy/core/__init__.py", line 49, in <module>
    raise ImportError(msg)
ImportError: 

IMPORTANT: PLEASE READ THIS FOR ADVICE ON HOW TO SOLVE THIS ISSUE!

Importing the numpy C-extensions failed. This error can happen for
many reasons, often due to issues with your setup or how NumPy was
installed.

We have compiled some common reasons and troubleshooting tips at:

    https://numpy.org/devdocs/user/troubleshooting-importerror.html

Please note and check the following:

  * The Python version is: Python3.11 from "/usr/bin/python3"
  * The NumPy version is: "1.24.2"

and make sure that they are the versions you expect.
Please carefully study the documentation linked above for further help.

Original error was: ` + reason + "\n"
}

func TestReasonBehindAdvice(t *testing.T) {
	for reason, want := range map[string]string{
		"/usr/lib/python3/dist-packages/numpy/core/_multiarray_umath.so: undefined symbol: cblas_sgemm": "undefined-symbol cblas_sgemm",
		"libcblas.so.3: cannot open shared object file: No such file or directory":                      "shared-library libcblas.so.3",
		"No module named 'numpy.core._multiarray_umath'":                                                "module-missing numpy.core._multiarray_umath",
	} {
		whole := numpyAdvice(reason)
		_, last, _ := strings.Cut(whole, "another exception occurred:\n\n") // as from a program that shows no context
		for _, text := range []string{whole, last, strings.ReplaceAll(last, "ImportError: \n", "ImportError: Unable to import required dependencies:\nnumpy: \n")} {
			got := Diagnose(rankOne(text))
			sane(t, got)
			if got.Signature+" "+got.Artefact != want || !strings.Contains(got.Text, reason) || got.Retry != got.Category.Action() {
				t.Errorf("got %s %s, want %s: %s", got.Signature, got.Artefact, want, got.Text)
			}
		}
	}
}

// TestMessageOfHardLines checks that the search for messages takes no more than twenty times as long in lines that
// are made to slow it down as in ordinary lines of the same length.
func TestMessageOfHardLines(t *testing.T) {
	took := func(long ...string) time.Duration {
		var lines []string
		for range message.Reach * 2 {
			lines = append(lines, long...)
		}
		evidence := four().prints(1, 10, strings.Join(lines, "\n")).exit(1, 10.1, failed).Evidence
		begun := time.Now()
		Diagnose(evidence)
		return time.Since(begun)
	}
	hard := []string{strings.Repeat("a/b.c ", 300) + "error" + strings.Repeat(" [(", 1000), strings.Repeat("error: ", 500)}
	plain := []string{strings.Repeat("a word ", len(hard[0])/7), strings.Repeat("a word ", len(hard[1])/7)}
	h, p := took(hard...), took(plain...)
	t.Logf("%s, and %s in ordinary lines", h, p)
	if h > 20*p {
		t.Errorf("it took %s, and %s in ordinary lines", h, p)
	}
}
