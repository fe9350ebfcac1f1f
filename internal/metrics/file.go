// Package metrics reads the metrics of a training job. It reads them from the job's output, from event files of
// TensorBoard, from CSV files, from files of JSON lines, from the file of an offline run of W&B, and from the
// trainer_state.json of Hugging Face. It can follow files that grow. If a file was truncated or replaced, it
// reads the file from the beginning.
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
	Series  string // name in the file, as in "train/loss"
	Step    int64
	ByEpoch bool    // Step counts epochs
	Time    float64 // seconds since 1970 or since the start of the run; 0 if not known
	Value   float64
}

// Format is the format of a file with metrics.
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

// A parser reads points from the data of a file, which it gets in pieces.
type parser interface {
	add(piece []byte, emit func(Point)) error
}

// File is a file with metrics, which may still grow. Only one goroutine may use it.
type File struct {
	// Metric is the name of a metric. From the output of ranks, a File reads that metric even if its name has
	// no known meaning.
	Metric string

	path   string
	under  string // "validation/" if the name of the file's directory says that the metrics are of validation data
	format Format
	parser parser
	output *output // the parser if the format is Output
	offset int64   // number of bytes that were read
	info   fs.FileInfo
	total  int64
	broken error
	final  bool  // the file will not grow
	quiet  int64 // points before this offset are not reported
}

// NewFile returns a File for a path. The file need not exist yet. Poll reads it.
func NewFile(path string) *File {
	f := &File{path: path}
	if dir := strings.ToLower(filepath.Base(filepath.Dir(path))); otherData[dir] || dir == "train" {
		f.under = dir + "/"
	}
	return f
}

// NewFileFrom is like NewFile, but skips the points before offset from. If the file is a trainer_state.json, or
// becomes shorter, the File reports all points.
func NewFileFrom(path string, from int64) *File {
	f := NewFile(path)
	f.quiet = from
	return f
}

// Path returns the path of the file.
func (f *File) Path() string { return f.path }

// Format returns the format of the file. It returns Unknown as long as too little of the file was read.
func (f *File) Format() Format { return f.format }

// Total returns the number of planned steps. It returns 0 if the file does not have that number.
func (f *File) Total() int64 {
	if f.output != nil {
		return f.output.total
	}
	return f.total
}

// Poll calls emit for every point that was added to the file since the last call. It returns when it has read
// the whole file or ctx has ended. If the file does not exist, Poll does nothing. If the file has become
// shorter, or its path now names another file, Poll reads it from the beginning. After a DamagedError, Poll
// does nothing until the file has become shorter or was replaced. Poll may block while the file system blocks.
func (f *File) Poll(ctx context.Context, emit func(Point)) error {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if f.info != nil && (info.Size() < f.offset || !os.SameFile(info, f.info)) || f.format == HFState && changed(info, f.info) {
		*f = File{Metric: f.Metric, path: f.path, under: f.under, total: f.total}
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
		piece, tell := buffer, emit
		if left := f.quiet - f.offset; left > 0 {
			piece, tell = buffer[:min(left, int64(len(buffer)))], func(Point) {}
		}
		n, err := file.ReadAt(piece, f.offset)
		f.offset += int64(n)
		if n > 0 {
			if f.broken = f.parser.add(piece[:n], tell); f.broken != nil {
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

// wholeState reads a trainer_state.json. It ignores one that is not valid JSON, because the job may be
// writing it.
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

// detect finds the format by the first bytes of the file.
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
		f.format, f.parser = TensorBoard, &tensorBoard{} // its parser will report the damage
	case strings.Contains(name, "tfevents"), strings.HasSuffix(name, ".wandb"):
	case strings.HasSuffix(name, ".json") && (isState(head) || name == "trainer_state.json"):
		f.format = HFState
	case !whole:
	default:
		f.text(line)
	}
	return nil
}

// text finds the format of a text file by its first line.
func (f *File) text(line []byte) {
	if _, ok := object(line); ok {
		f.format, f.parser = JSONLines, &lines{each: (&objects{}).line}
		return
	}
	if names, _ := header(bytes.TrimSuffix(line, []byte("\r"))); names != nil {
		f.format, f.parser = CSV, &lines{each: (&table{}).line}
		return
	}
	f.output = &output{at: -1, metric: f.Metric}
	f.format, f.parser = Output, &lines{each: f.output.line}
}

// ReadAll returns all points that a file has now. If the last line has no line end, ReadAll reads it, too.
func ReadAll(ctx context.Context, path string) (f *File, points []Point, err error) {
	f, err = Each(ctx, path, "", func(p Point) { points = append(points, p) })
	return f, points, err
}

// Each calls emit for each point that a file has now. If the last line has no line end, Each reads it, too.
// metric is as File.Metric.
func Each(ctx context.Context, path, metric string, emit func(Point)) (*File, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	f := NewFile(path)
	f.final, f.Metric = true, metric
	err := f.Poll(ctx, emit)
	if text, ok := f.parser.(*lines); ok && err == nil && len(text.rest) > 0 {
		err = text.add([]byte("\n"), func(p Point) { p.Series = f.under + p.Series; emit(p) })
	}
	return f, err
}
