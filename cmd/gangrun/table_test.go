package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// docTable is a table in a page of the documentation, between two marks. Each row comes from a test. The test compares
// the row with its result or, if UPDATE is 1, writes the row.
type docTable struct {
	path       string
	begin, end string
	head       string
	first      []string // the first cells of the rows, in order

	mu sync.Mutex
}

// read returns the text before the table, its rows, and the text after it.
func (d *docTable) read(t testing.TB) (before string, rows []string, after string) {
	t.Helper()
	page, err := os.ReadFile(filepath.FromSlash(d.path))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(page), d.begin)
	table, after, ok2 := strings.Cut(rest, d.end)
	table, ok3 := strings.CutPrefix(table, d.head)
	if !ok1 || !ok2 || !ok3 {
		t.Fatalf("%s has no table between %q and %q", d.path, d.begin, d.end)
	}
	for row := range strings.Lines(table) {
		rows = append(rows, row)
	}
	return before, rows, after
}

// startsWith returns a function that reports whether the first cell of a row is first.
func startsWith(first string) func(row string) bool {
	return func(row string) bool { return strings.HasPrefix(row, "| "+first+" | ") }
}

// inOrder checks that the table has one row for each first cell, in order.
func (d *docTable) inOrder(t testing.TB) {
	t.Helper()
	_, rows, _ := d.read(t)
	if len(rows) != len(d.first) {
		t.Errorf("%s: the table has %d rows, want %d", d.path, len(rows), len(d.first))
	}
	for i, row := range rows {
		if i < len(d.first) && !startsWith(d.first[i])(row) {
			t.Errorf("%s: row %d is %q, want %q", d.path, i+1, row, d.first[i])
		}
	}
}

// row compares a row of the table with the result of a test. If UPDATE is 1, it writes the row instead. It does
// nothing if the test has failed.
func (d *docTable) row(t testing.TB, cells ...string) {
	t.Helper()
	if !slices.Contains(d.first, cells[0]) {
		t.Fatalf("the table in %s lacks %q", d.path, cells[0])
	}
	if t.Failed() {
		return
	}
	row := "| " + strings.Join(cells, " | ") + " |\n"
	d.mu.Lock()
	defer d.mu.Unlock()
	before, rows, after := d.read(t)
	if os.Getenv("UPDATE") == "1" {
		place := func(row string) int {
			return slices.IndexFunc(d.first, func(first string) bool { return startsWith(first)(row) })
		}
		rows = slices.DeleteFunc(rows, func(row string) bool { return startsWith(cells[0])(row) || place(row) < 0 })
		rows = append(rows, row)
		slices.SortStableFunc(rows, func(a, b string) int { return place(a) - place(b) })
		page := before + d.begin + d.head + strings.Join(rows, "") + d.end + after
		if err := os.WriteFile(filepath.FromSlash(d.path), []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !slices.Contains(rows, row) {
		t.Errorf("%s does not say %q", d.path, row)
	}
}
