package endreport

import (
	"strings"
	"testing"
)

// TestTable checks that a table of torchrun gives the exception of each rank that has recorded one.
func TestTable(t *testing.T) {
	got := Table(strings.Split(`Failures:
[1]:
  time      : 2026-11-26_13:00:42
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 8)
  traceback : Traceback (most recent call last):
  KeyError: 'a'
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  rank      : 0 (local_rank: 0)
  traceback : Traceback (most recent call last):
  RuntimeError: Connection closed by peer
============================================================
KeyError: 'a'`, "\n"))
	if len(got) != 2 || got[0].Rank != 1 || !strings.Contains(got[0].Text, "KeyError") || got[1].Rank != 0 || strings.Contains(got[1].Text, "KeyError") {
		t.Errorf("got %+v", got)
	}
}
