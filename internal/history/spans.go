package history

import (
	"context"
	"database/sql"
	"time"

	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/saves"
)

// maxSpans limits how many attempts Spans returns. It returns the newest.
const maxSpans = 2000

// The table is made when it is first needed. Older versions of gangrun ignore it, and the version of the file stays the
// same. A stall of -1 means that the stall is not known.
const spansTable = `
CREATE TABLE IF NOT EXISTS spans (
	run TEXT NOT NULL, attempt INTEGER NOT NULL, ended INTEGER NOT NULL, job TEXT NOT NULL, hosts TEXT NOT NULL, ran INTEGER NOT NULL,
	failed INTEGER NOT NULL, write INTEGER NOT NULL, stall INTEGER NOT NULL, PRIMARY KEY (run, attempt)
);
CREATE INDEX IF NOT EXISTS spans_by_end ON spans (ended);
`

// AddSpans adds the attempts of a run, or replaces them. ended is when the run ended.
func (f File) AddSpans(ctx context.Context, run string, ended time.Time, spans []saves.Span) error {
	if len(spans) == 0 {
		return nil
	}
	return f.use(ctx, "written", true, func(db *sql.DB) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // has no effect after Commit
		if _, err := tx.ExecContext(ctx, spansTable); err != nil {
			return err
		}
		for i, s := range spans {
			hosts, err := exact.Marshal(s.Hosts)
			if err != nil {
				return err
			}
			stall := int64(-1)
			if s.Stall != nil {
				stall = int64(*s.Stall)
			}
			if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO spans (run, attempt, ended, job, hosts, ran, failed, write, stall) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
				run, i+1, ended.UnixNano(), s.Job, string(hosts), int64(s.Ran), s.Failed, int64(s.Write), stall); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM spans WHERE ended < (SELECT ended FROM spans ORDER BY ended DESC LIMIT 1 OFFSET ?)", Kept-1); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// Spans returns the newest attempts of all runs, the newest of them first.
func (f File) Spans(ctx context.Context) (all []saves.Span, err error) {
	err = f.use(ctx, "read", false, func(db *sql.DB) error {
		tables := 0
		if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'spans'").Scan(&tables); err != nil || tables == 0 {
			return err
		}
		rows, err := db.QueryContext(ctx, "SELECT job, hosts, ran, failed, write, stall FROM spans ORDER BY ended DESC, attempt DESC LIMIT ?", maxSpans)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var s saves.Span
			var hosts string
			var stall int64
			if err := rows.Scan(&s.Job, &hosts, &s.Ran, &s.Failed, &s.Write, &stall); err != nil {
				return err
			}
			if err := exact.Unmarshal([]byte(hosts), &s.Hosts); err != nil {
				return err
			}
			if stall >= 0 {
				d := time.Duration(stall)
				s.Stall = &d
			}
			all = append(all, s)
		}
		return rows.Err()
	})
	return all, err
}
