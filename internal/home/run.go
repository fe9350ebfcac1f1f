package home

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/journal"
)

// Names in a run's directory.
const (
	jobName     = "job.yaml"
	journalName = "journal.jsonl"
	reportName  = "report.json"
	pageName    = "report.html"
)

// Run is the directory of one run.
type Run struct {
	// ID is unique in its home. IDs sort by the time in UTC at which the run was created,
	// as in 20261121-095912-digits-7f3a.
	ID  string
	Dir string // absolute
}

// Created returns the time at which the run was created, to the second. It reads the time from
// the ID, and returns the zero time if the ID has none.
func (r Run) Created() time.Time {
	at, err := time.Parse(stamp, r.ID[:min(len(r.ID), len(stamp))])
	if err != nil {
		return time.Time{}
	}
	return at
}

// JobPath returns the path of the run's job file.
func (r Run) JobPath() string { return filepath.Join(r.Dir, jobName) }

// JournalPath returns the path of the run's journal.
func (r Run) JournalPath() string { return filepath.Join(r.Dir, journalName) }

// ReportPath returns the path of the report of a run that has ended.
func (r Run) ReportPath() string { return filepath.Join(r.Dir, reportName) }

// PagePath returns the path of the run's page, report.html.
func (r Run) PagePath() string { return filepath.Join(r.Dir, pageName) }

// AttemptDir returns the directory of an attempt's logs and creates it if necessary. The
// trial is attempt 0.
func (r Run) AttemptDir(number int) (string, error) {
	name := "trial"
	if number > 0 {
		name = strconv.Itoa(number)
	}
	dir := filepath.Join(r.Dir, "attempts", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot make the directory for the ranks' logs: %w", err)
	}
	return dir, nil
}

const (
	stamp    = "20060102-150405"
	maxSlug  = 24  // limits the bytes of a job's name in its runs' IDs, which are also in names of sockets
	maxTries = 100 // limits the tries to find a random part for an ID, of 65,536 values
)

// Create creates the directory of a new run in the home at dir, and the home if necessary. Only
// its owner can read the directory. name is the name of the job; it may be empty. file is the
// content of job.yaml, without secrets. Create reads the random part of the ID from rnd. The
// caller closes the journal. If Create fails, it removes what it has created.
func Create(dir string, now time.Time, name string, file []byte, rnd io.Reader) (Run, *journal.Journal, error) {
	fail := func(err error) (Run, *journal.Journal, error) {
		return Run{}, nil, failure.Hinted("make room or get permission there, or set GANGRUN_HOME to another directory",
			"cannot keep the run's records: %w", err)
	}
	runs := filepath.Join(dir, "runs")
	if err := os.MkdirAll(runs, 0o700); err != nil {
		return fail(err)
	}
	run, err := reserve(runs, now, name, rnd)
	if err != nil {
		return fail(err)
	}
	// Neither file is forced to the disk here, because that would delay the launch. The journal is forced to the disk
	// later, and its first event has everything that the job file has.
	j, err := journal.Create(run.JournalPath())
	if err == nil {
		if err = os.WriteFile(run.JobPath(), file, 0o600); err == nil {
			return run, j, nil
		}
		err = errors.Join(err, j.Close())
	}
	return fail(errors.Join(err, os.RemoveAll(run.Dir)))
}

// reserve makes the directory of a run with an ID that no other run has.
func reserve(runs string, now time.Time, name string, rnd io.Reader) (Run, error) {
	prefix := now.UTC().Format(stamp) + "-"
	if s := slug(name); s != "" {
		prefix += s + "-"
	}
	var err error
	for range maxTries {
		var random [2]byte
		if _, err := io.ReadFull(rnd, random[:]); err != nil {
			return Run{}, fmt.Errorf("no random number for the run's ID: %w", err)
		}
		id := prefix + hex.EncodeToString(random[:])
		run := Run{id, filepath.Join(runs, id)}
		if err = os.Mkdir(run.Dir, 0o700); err == nil {
			return run, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return Run{}, err
}

// slug turns a job's name into lower-case letters, digits and single dashes.
func slug(name string) string {
	var s strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			s.WriteRune(r)
		case s.Len() > 0 && !strings.HasSuffix(s.String(), "-"):
			s.WriteByte('-')
		}
	}
	all := s.String()
	return strings.Trim(all[:min(len(all), maxSlug)], "-")
}
