package main

import (
	_ "embed" // reasons.csv
	"encoding/csv"
	"strconv"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// caught says what has found a failure.
type caught string

// What can find failures, from the cheapest to the most expensive.
const (
	static caught = "static preflight"
	trial  caught = "trial"
	gang   caught = "gang"
)

// reason is a reason for failures in the Philly study, and the job that fails for it.
type reason struct {
	name string // as in the study
	// job is the name of the job file in examples/failures, without its extension, and does is
	// what the job does.
	job, does string
	// minutes is the median of the times for which the study's jobs had run when they failed.
	minutes float64
	// category, by and recovers are the right results: the category, what finds the failure, and whether the job
	// reaches its end nevertheless. The right action is the action of the category.
	category job.Category
	by       caught
	recovers bool
	// saves is true if the job saves checkpoints.
	saves bool
}

// table has the reasons of table 7 of the study (Jeon et al., USENIX ATC 2019) in its order, except
// "No signature". Each line has the name of the reason, its median in the study, and the properties
// of the job here.
//
//go:embed reasons.csv
var table string

// reasons has the reasons in the table.
var reasons = mustRead(table)

// mustRead reads a table of reasons, whose first line names the columns.
func mustRead(table string) []reason {
	lines, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil {
		panic(err)
	}
	var read []reason
	for _, l := range lines[1:] {
		minutes, err := strconv.ParseFloat(l[2], 64)
		if err != nil {
			panic(err)
		}
		read = append(read, reason{name: l[0], job: l[1], minutes: minutes, category: job.Category(l[3]), by: caught(l[4]),
			recovers: l[5] == "yes", saves: l[6] == "yes", does: l[7]})
	}
	return read
}

// failAfter returns for how long the job runs before it fails. longest is that time for the job that runs for the
// longest time.
func (r reason) failAfter(longest time.Duration) time.Duration {
	most := 0.0
	for _, other := range reasons {
		most = max(most, other.minutes)
	}
	return time.Duration(float64(longest) * r.minutes / most)
}
