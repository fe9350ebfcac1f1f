package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/gangrun/gangrun/internal/follow"
	"github.com/gangrun/gangrun/internal/interrupt"
	"github.com/gangrun/gangrun/internal/record"
	"github.com/gangrun/gangrun/internal/view"
	"github.com/gangrun/gangrun/supervisor/runreport"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
)

// cutReport is what attach -o json prints if it ends before the run does.
type cutReport struct {
	runreport.Report
	Dir    string `json:"dir"`
	CutOff string `json:"cut_off"` // why the report goes no further
}

// cutOff returns the error with which attach ends before the run does. If asJSON is true and attach has not changed the
// run, cutOff prints what is known of the run.
func cutOff(run home.Run, err error, asJSON bool) error {
	var left interrupt.Signal
	why := ""
	switch {
	case errors.As(err, &left):
		why = fmt.Sprintf("gangrun attach was ended by %s; the run was left as it was", job.SignalName(int(left.Number)))
		err = failure.Exit(128 + int(left.Number))
	case errors.As(err, new(follow.GoneError)):
		why = err.Error()
	}
	if why == "" || !asJSON {
		return err
	}
	report, _, read := record.Report(run)
	if read != nil {
		return errors.Join(err, read)
	}
	return errors.Join(err, view.JSON(os.Stdout, cutReport{report, run.Dir, why}))
}
