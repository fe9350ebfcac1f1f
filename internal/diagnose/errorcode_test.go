package diagnose

import "testing"

// petsc returns the traceback of petsc4py for an error with a code. explained has the lines that explain the error.
func petsc(code, explained string) string {
	return `Traceback (most recent call last):
  File "/home/ana/job/t.py", line 12, in <module>
    k=PETSc.KSP().create(); k.setOperators(A); k.setFromOptions(); k.solve(b,x)
                                               ^^^^^^^^^^^^^^^^^^
  File "PETSc/KSP.pyx", line 157, in petsc4py.PETSc.KSP.setFromOptions
petsc4py.PETSc.Error: error code ` + code + explained
}

// TestErrorCode checks that the text of an exception which gives only a code includes the explanation after it.
func TestErrorCode(t *testing.T) {
	const calls = "\n[0] KSPSetFromOptions() at ./src/ksp/ksp/interface/itcl.c:344\n[0] KSPSetType() at ./src/ksp/ksp/interface/itcreate.c:767"
	for _, c := range []struct{ name, text, want, artefact string }{
		{"an unknown type", petsc("86", calls+"\n[0] Unknown type. Check for miss-spelling or missing package: https://petsc.org/release/install/install/#external-packages\n[0] Unable to find requested KSP type nosuch"),
			"program-input Error: error code 86: Unable to find requested KSP type nosuch (t.py line 12)", ""},
		{"a value that is no number", petsc("63", calls+"\n[0] Argument out of range\n[0] Input string abc has no numeric value"),
			"program-input Error: error code 63: Argument out of range; Input string abc has no numeric value (t.py line 12)", ""},
		{"an unknown choice", petsc("83", calls+"\n[0] Unknown option foo for -ksp_pc_side. Available options: left right symmetric "),
			"program-input Error: error code 83: Unknown option foo for -ksp_pc_side. Available options: left right symmetric (t.py line 12)", ""},
		{"a file", petsc("65", calls+"\n[0] Unable to open file\n[0] Cannot locate file: /nowhere/x.bin"),
			"missing-file Error: error code 65: Unable to open file; Cannot locate file: /nowhere/x.bin (t.py line 12)", "/nowhere/x.bin"},
		{"a zero pivot", petsc("71", calls+"\n[0] Zero pivot in LU factorization: https://petsc.org/release/faq/#zeropivot\n[0] Zero pivot row 0 value 0. tolerance 2.22045e-14"),
			"uncaught-exception Error: error code 71: Zero pivot row 0 value 0. tolerance 2.22045e-14 (t.py line 12)", ""},
		{"a web page alone", petsc("71", "\n[0] Zero pivot in LU factorization: https://petsc.org/release/faq/#zeropivot"),
			"uncaught-exception Error: error code 71: Zero pivot in LU factorization: https://petsc.org/release/faq/#zeropivot (t.py line 12)", ""},
		{"calls alone", petsc("76", calls), "uncaught-exception Error: error code 76 (t.py line 12)", ""},
		{"nothing", petsc("76", ""), "uncaught-exception Error: error code 76 (t.py line 12)", ""},
		{"an empty line ends it", petsc("76", "\n\nthe weather is fine"), "uncaught-exception Error: error code 76 (t.py line 12)", ""},
		{"what a launcher prints ends it", petsc("76", "\n"+aborting), "uncaught-exception Error: error code 76 (t.py line 12)", ""},
		{"a message that says something", raise("my.Failure: the mesh is empty: error code 3") + "\nthe weather is fine",
			"uncaught-exception Failure: the mesh is empty: error code 3 (train.py line 88 in step)", ""},
		{"a key", raise("KeyError: 5") + "\nthe weather is fine", "python-key-error KeyError: 5 (train.py line 88 in step)", ""},
		{"the job's own option", raise("my.Failure: unknown option x"), "uncaught-exception Failure: unknown option x (train.py line 88 in step)", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Diagnose(rankOne(c.text))
			sane(t, got)
			if text := got.Signature + " " + got.Text[len("rank 1 on h1: "):]; text != c.want || got.Artefact != c.artefact {
				t.Errorf("got  %s, artefact %q\nwant %s", text, got.Artefact, c.want)
			}
		})
	}
}
