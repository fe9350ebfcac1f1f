// Package metrics reads the metrics of a training job from where the job leaves them: its output, event files
// of TensorBoard, CSV, JSON lines, the file of an offline run of W&B, and the trainer_state.json of Hugging
// Face. It follows files that grow, and begins again with those that were truncated or replaced. A file in
// which nothing is found disturbs nothing.
package metrics

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gangrun/gangrun/internal/safefile"
)

// Point is a value of a series at a step.
type Point struct {
	Series  string // its name, as the job has it: "train/loss"
	Step    int64
	ByEpoch bool    // Step counts epochs
	Time    float64 // seconds, since 1970 or since the start of the run; 0 if not known
	Value   float64
}

// Format is how a file holds metrics.
type Format string

// The formats.
const (
	Unknown     Format = ""
	Output      Format = "output"
	TensorBoard Format = "tensorboard"
	CSV         Format = "csv"
	JSONLines   Format = "jsonl"
	WandB       Format = "wandb"
	HFState     Format = "trainer_state"
)

// maxState is the largest trainer_state.json that is read, in bytes.
const maxState = 64 << 20

// parser finds points in the pieces of a file.
type parser interface {
	add(piece []byte, emit func(Point)) error
}

// File is a file with metrics, which may still grow. Only one goroutine may use it.
type File struct {
	path   string
	under  string // "validation/", if the directory of the file says that its metrics are of that
	format Format
	parser parser
	output *output // the parser of an Output
	offset int64   // of what was read
	info   fs.FileInfo
	total  int64
	broken error
	final  bool // the file will not grow
}

// NewFile returns the file at path, which need not exist yet. Poll reads it.
func NewFile(path string) *File {
	f := &File{path: path}
	if dir := strings.ToLower(filepath.Base(filepath.Dir(path))); otherData[dir] || dir == "train" {
		f.under = dir + "/"
	}
	return f
}

// Path returns the path of the file.
func (f *File) Path() string { return f.path }

// Format returns the format of the file; Unknown as long as too little of it was read.
func (f *File) Format() Format { return f.format }

// Total returns the number of planned steps, if the file tells it; otherwise 0.
func (f *File) Total() int64 {
	if f.output != nil {
		return f.output.total
	}
	return f.total
}

// Poll calls emit for every point that was added to the file since the last call, until it has read all or
// ctx ends. A file that does not exist is empty. If the file has become shorter, or its path names another
// file now, Poll begins again. After a DamagedError, Poll does nothing until that happens. It may block as
// long as the file system does.
func (f *File) Poll(ctx context.Context, emit func(Point)) error {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if f.info != nil && (info.Size() < f.offset || !os.SameFile(info, f.info)) || f.format == HFState && changed(info, f.info) {
		*f = File{path: f.path, under: f.under, total: f.total}
	}
	if f.broken != nil || f.info != nil && info.Size() == f.offset {
		return nil
	}
	f.info = info
	file, err := safefile.Open(f.path)
	if err != nil {
		return err
	}
	defer file.Close()
	within := func(p Point) {
		p.Series = f.under + p.Series
		emit(p)
	}
	if f.format == Unknown {
		if err := f.detect(file); err != nil || f.format == Unknown {
			return err
		}
	}
	if f.format == HFState {
		return f.wholeState(file, within)
	}
	return f.more(ctx, file, within)
}

func changed(now, before fs.FileInfo) bool {
	return before != nil && (now.Size() != before.Size() || !now.ModTime().Equal(before.ModTime()))
}

func (f *File) more(ctx context.Context, file io.ReaderAt, emit func(Point)) error {
	buffer := make([]byte, 64<<10)
	for ctx.Err() == nil {
		n, err := file.ReadAt(buffer, f.offset)
		f.offset += int64(n)
		if n > 0 {
			if f.broken = f.parser.add(buffer[:n], emit); f.broken != nil {
				return f.broken
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// wholeState reads a trainer_state.json. While it is being written, it is no JSON yet.
func (f *File) wholeState(file io.Reader, emit func(Point)) error {
	text, err := io.ReadAll(io.LimitReader(file, maxState+1))
	if err != nil {
		return err
	}
	if len(text) > maxState {
		return &safefile.SizeError{Path: f.path, Limit: maxState}
	}
	f.offset = int64(len(text))
	if total, err := state(text, emit); err == nil {
		f.total = total
	}
	return nil
}

// detect finds the format by the beginning of the file.
func (f *File) detect(file io.ReaderAt) error {
	head := make([]byte, 64<<10)
	n, err := file.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return err
	}
	head = head[:n]
	name := strings.ToLower(filepath.Base(f.path))
	line, _, whole := bytes.Cut(head, []byte("\n"))
	whole = whole || n == cap(head) || f.final && n > 0
	switch {
	case isTensorBoard(head):
		f.format, f.parser = TensorBoard, &tensorBoard{}
	case len(head) >= len(wandbHeader) && bytes.HasPrefix(head, wandbHeader[:4]):
		f.format, f.parser = WandB, &wandb{}
	case strings.Contains(name, "tfevents") && n >= 12:
		f.format, f.parser = TensorBoard, &tensorBoard{} // whose Poll says that it is damaged
	case strings.Contains(name, "tfevents"), strings.HasSuffix(name, ".wandb"):
	case strings.HasSuffix(name, ".json") && (isState(head) || name == "trainer_state.json"):
		f.format = HFState
	case !whole:
	default:
		f.text(line)
	}
	return nil
}

// text chooses among the formats of text by the first line.
func (f *File) text(line []byte) {
	if _, ok := object(line); ok {
		f.format, f.parser = JSONLines, &lines{each: (&objects{}).line}
		return
	}
	if names, _ := header(bytes.TrimSuffix(line, []byte("\r"))); names != nil {
		f.format, f.parser = CSV, &lines{each: (&table{}).line}
		return
	}
	f.output = &output{at: -1}
	f.format, f.parser = Output, &lines{each: f.output.line}
}

// ReadAll returns all points of a file as it is now. If the last line has no end, ReadAll reads it, too.
func ReadAll(ctx context.Context, path string) (f *File, points []Point, err error) {
	if _, err := os.Stat(path); err != nil {
		return nil, nil, err
	}
	f = NewFile(path)
	f.final = true
	add := func(p Point) { points = append(points, p) }
	err = f.Poll(ctx, add)
	if text, ok := f.parser.(*lines); ok && err == nil && len(text.rest) > 0 {
		err = text.add([]byte("\n"), func(p Point) { p.Series = f.under + p.Series; add(p) })
	}
	return f, points, err
}
