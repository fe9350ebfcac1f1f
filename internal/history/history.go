package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/safefile"
)

// Kept is how many runs the history keeps. It keeps the newest.
const Kept = 10000

// File is the path of a history. Its methods open the file and close it again.
type File string

// In returns the file of the history in gangrun's home.
func In(home string) File { return File(filepath.Join(home, "history.db")) }

// version is the version of the tables, which the file has as its user_version.
const version = 1

// The journal mode is not WAL, which does not work over NFS.
const tables = `
CREATE TABLE runs (
	run TEXT PRIMARY KEY, ended INTEGER NOT NULL, name TEXT NOT NULL, command TEXT NOT NULL, fingerprint TEXT NOT NULL,
	state TEXT NOT NULL, exit_code INTEGER NOT NULL, may_help INTEGER NOT NULL,
	category TEXT NOT NULL, signature TEXT NOT NULL, rank INTEGER NOT NULL, step INTEGER NOT NULL, text TEXT NOT NULL,
	artefact TEXT NOT NULL, mark TEXT NOT NULL
);
CREATE INDEX runs_by_end ON runs (ended);
CREATE INDEX runs_by_fingerprint ON runs (fingerprint, ended);
`

const columns = "run, ended, name, command, fingerprint, state, exit_code, may_help, category, signature, rank, step, text, artefact, mark"

// busyLimit is how long a controller waits for other controllers that write.
const busyLimit = 5 * time.Second

// open opens the file. If create is false, the error for a file that does not exist wraps
// fs.ErrNotExist.
func (f File) open(ctx context.Context, create bool) (*sql.DB, error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE
		if err := os.MkdirAll(filepath.Dir(string(f)), 0o700); err != nil {
			return nil, err
		}
	}
	file, err := safefile.OpenFile(string(f), flags, 0o600) // SQLite would make a file that other users can read
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	query := url.Values{"_txlock": {"immediate"}, "_pragma": {fmt.Sprintf("busy_timeout(%d)", busyLimit.Milliseconds()), "journal_mode(DELETE)"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: string(f), RawQuery: query.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if err := f.prepare(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// prepare makes the tables in a new file.
func (f File) prepare(ctx context.Context, db *sql.DB) error {
	have := 0
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil || have == version {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // has no effect after Commit
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil || have == version {
		return err // another controller has made the tables meanwhile
	}
	if have > version {
		return fmt.Errorf("a newer gangrun has made it: its version is %d, and this gangrun knows %d", have, version)
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("%sPRAGMA user_version = %d", tables, version)); err != nil {
		return err
	}
	return tx.Commit()
}

// use opens the file, calls do, and closes the file.
func (f File) use(ctx context.Context, doing string, create bool, do func(*sql.DB) error) error {
	db, err := f.open(ctx, create)
	if err == nil {
		err = errors.Join(do(db), db.Close())
	}
	if err == nil || !create && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if create {
		err = f.explain(err)
	}
	return failure.Hinted("look at the file and its file system; if it is broken, move it away, and gangrun begins a new one",
		"the history %q cannot be %s: %w", string(f), doing, err)
}

// explain adds the reason to an error of a write, if it can find it. SQLite needs new files in the directory, and does
// not say why it cannot make one. So explain tries to make a file there, and adds the error of that.
func (f File) explain(err error) error {
	probe, probeErr := os.CreateTemp(filepath.Dir(string(f)), filepath.Base(string(f))+".*.tmp")
	if probeErr != nil {
		return fmt.Errorf("%w: %w", err, probeErr)
	}
	_ = probe.Close()
	_ = os.Remove(probe.Name())
	return err
}

// Add adds a run that has ended, or replaces its entry.
func (f File) Add(ctx context.Context, e Entry) error {
	command, err := exact.Marshal(e.Command)
	if err != nil {
		return err
	}
	return f.use(ctx, "written", true, func(db *sql.DB) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // has no effect after Commit
		_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO runs ("+columns+") VALUES (?"+strings.Repeat(", ?", strings.Count(columns, ","))+")",
			e.Run, e.Ended.UnixNano(), e.Name, string(command), e.Fingerprint, string(e.State), e.ExitCode, e.MayHelp,
			string(e.Category), e.Signature, e.Rank, e.Step, e.Text, e.Artefact, e.Mark)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM runs WHERE ended < (SELECT ended FROM runs ORDER BY ended DESC LIMIT 1 OFFSET ?)", Kept-1); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// Failed returns the newest run that has the given fingerprint, has failed with one of the given categories,
// and would fail again in the same way. ok is false if there is no such run, or if a later run with this
// fingerprint has succeeded.
func (f File) Failed(ctx context.Context, fingerprint string, categories []job.Category) (e Entry, ok bool, err error) {
	if fingerprint == "" {
		return Entry{}, false, nil
	}
	args := []any{fingerprint, string(job.StateSucceeded)}
	for _, c := range categories {
		args = append(args, string(c))
	}
	found, err := f.query(ctx, "SELECT "+columns+", 0 FROM runs WHERE fingerprint = ? AND (state = ? OR may_help = 0 AND category IN ("+
		strings.TrimPrefix(strings.Repeat(", ?", len(categories)), ", ")+")) ORDER BY ended DESC, run DESC LIMIT 1", args...)
	if err != nil || len(found) == 0 || found[0].State == job.StateSucceeded {
		return Entry{}, false, err
	}
	return found[0], true, nil
}

// List returns the newest runs, the newest first. It returns at most limit runs. If name is not empty, it
// returns only runs with that name.
func (f File) List(ctx context.Context, name string, limit int) ([]Entry, error) {
	return f.query(ctx, `SELECT `+columns+`, CASE WHEN category = '' THEN 0 ELSE
		count(*) OVER (PARTITION BY CASE WHEN name = '' THEN command ELSE name END, category, signature) END
		FROM runs WHERE ? IN ('', name) ORDER BY ended DESC, run DESC LIMIT ?`, name, limit)
}

// query returns the entries that a statement selects.
func (f File) query(ctx context.Context, statement string, args ...any) (all []Entry, err error) {
	all = []Entry{}
	err = f.use(ctx, "read", false, func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var e Entry
			var ended int64
			var command string
			if err := rows.Scan(&e.Run, &ended, &e.Name, &command, &e.Fingerprint, &e.State, &e.ExitCode, &e.MayHelp,
				&e.Category, &e.Signature, &e.Rank, &e.Step, &e.Text, &e.Artefact, &e.Mark, &e.Times); err != nil {
				return err
			}
			if err := exact.Unmarshal([]byte(command), &e.Command); err != nil {
				return err
			}
			e.Ended = time.Unix(0, ended)
			all = append(all, e)
		}
		return rows.Err()
	})
	return all, err
}
