package slurmjob

import (
	"testing"
	"time"
)

// TestParse parses recorded lines of Slurm 22.05.
func TestParse(t *testing.T) {
	j, err := parse("JobId=12 ArrayJobId=11 ArrayTaskId=1 JobName=a b=c UserId=bob(7002) GroupId=(7002) MCS_label=N/A Priority=1 Nice=0 Account=(null) QOS=(null) JobState=RUNNING Reason=None Dependency=(null) Requeue=1 Restarts=2 BatchFlag=1 Reboot=0 ExitCode=0:0 RunTime=00:00:01 TimeLimit=00:01:00 TimeMin=N/A SubmitTime=1795190400 EligibleTime=1795190400 AccrueTime=1795190400 StartTime=1795190400 EndTime=1795190460 Deadline=N/A PreemptEligibleTime=1795190400 PreemptTime=None SuspendTime=None ReqNodeList=(null) ExcNodeList=h[2-3] NodeList=h1 BatchHost=h1 Command=(null)\n")
	if err != nil || j.ID != "12" || j.Task != "11_1" || j.State != "RUNNING" || j.Restarts != 2 || !j.Requeue || j.Preempted || j.Excluded != "h[2-3]" || j.BatchHost != "h1" || !j.End.Equal(time.Unix(1795190460, 0)) {
		t.Errorf("%+v, %v", j, err)
	}
	if j, err := parse("JobId=7 JobState=PENDING Reason=None Restarts=0 TimeLimit=UNLIMITED EndTime=1795190460 PreemptTime=None"); err != nil || !j.End.IsZero() {
		t.Errorf("%+v, %v", j, err)
	}
	for _, text := range []string{"", "JobState=RUNNING", "no job\n"} {
		if j, err := parse(text); err == nil {
			t.Errorf("%q is %+v", text, j)
		}
	}
}

func TestEnding(t *testing.T) {
	for text, want := range map[string]Ending{
		"JobState=COMPLETING Reason=TimeLimit Restarts=1":           TimeLimit,
		"JobState=TIMEOUT Reason=None Restarts=1":                   TimeLimit,
		"JobState=RUNNING Reason=None Restarts=1 PreemptTime=17951": Preempted,
		"JobState=COMPLETING Reason=None Restarts=2":                Requeued,
		"JobState=PENDING Reason=BeginTime Restarts=2":              Requeued,
		"JobState=COMPLETING Reason=NodeDown Restarts=1":            NodeFail,
		"JobState=NODE_FAIL Reason=None Restarts=1":                 NodeFail,
		"JobState=CANCELLED Reason=None Restarts=1":                 Cancelled,
		"JobState=RUNNING Reason=None Restarts=1 PreemptTime=None":  Cancelled,
	} {
		j, err := parse("JobId=3 " + text)
		if got := j.Ending(1); err != nil || got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
