package htmlreport

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// facts returns the lines of the header.
func (r *Recorder) facts(report runreport.Report, x Extra) (all []fact) {
	add := func(name, format string, args ...any) { all = append(all, fact{name, fmt.Sprintf(format, args...)}) }
	if report.ExitCode != nil {
		add("exit code", "%d (%s)", *report.ExitCode, clip(report.ExitWhy))
	}
	if report.Started != nil {
		add("started", "%s", moment(*report.Started))
		end, name := x.Now, "up for"
		if report.Ended != nil {
			end, name = *report.Ended, "took"
		}
		add(name, "%s", span(end.Sub(*report.Started)))
	}
	hosts, gpus := map[string]bool{}, 0
	for _, p := range r.place.Ranks {
		hosts[p.Host] = true
		gpus += len(p.Devices)
	}
	size := text.Count(report.Ranks, "rank")
	if len(hosts) > 0 {
		size = text.Count(len(r.place.Ranks), "rank") + " on " + text.Count(len(hosts), "host")
	}
	if gpus > 0 {
		size += ", " + text.Count(gpus, "GPU")
	}
	add("gang", "%s", size)
	add("attempts", "%d", len(report.Attempts))
	if a := report.Last(); a != nil && a.Step >= 0 {
		last := fmt.Sprintf("step %d", a.Step)
		if a.Total > 0 {
			last += fmt.Sprintf(" of %d", a.Total)
		}
		if a.Loss != nil {
			last += ", loss " + number(*a.Loss)
		} else if a.LossIs != "" {
			last += ", loss " + a.LossIs
		}
		add("reached", "%s", last)
	}
	if g := report.GPUSeconds; g.Used > 0 {
		add("GPU time", "%s, %s of it wasted", span(seconds(g.Used)), span(seconds(g.Wasted)))
	}
	if b := report.Batch; b != nil {
		add("batch job", "%s in %s", b, b.System)
	}
	return all
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// moment formats a time. It uses UTC, because the page may be read anywhere.
func moment(t time.Time) string { return t.UTC().Format(time.DateTime + " UTC") }

// span formats a duration, as in "1.3 s", "12 min 5 s" or "3 h 20 min".
func span(d time.Duration) string {
	switch d = max(0, d); {
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Hour:
		return pair(d, time.Minute, "min", time.Second, "s")
	case d < 48*time.Hour:
		return pair(d, time.Hour, "h", time.Minute, "min")
	default:
		return pair(d, 24*time.Hour, "d", time.Hour, "h")
	}
}

func pair(d, large time.Duration, one string, small time.Duration, other string) string {
	d = d.Round(small)
	out := fmt.Sprintf("%d %s", d/large, one)
	if rest := d % large / small; rest > 0 {
		out += fmt.Sprintf(" %d %s", rest, other)
	}
	return out
}

// number formats a value of a curve, as in "0.1234", "182.7k" or "1.5e-07".
func number(v float64) string {
	unit := ""
	if size := math.Abs(v); size >= 1e4 && size < 1e15 {
		for _, unit = range []string{"k", "M", "G", "T"} {
			if v /= 1000; math.Abs(v) < 999.95 {
				break
			}
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64) + unit
}

// rankText names ranks, as in "rank 3" or "ranks 0-3,8".
func rankText(ranks []int) string {
	if len(ranks) == 1 {
		return "rank " + strconv.Itoa(ranks[0])
	}
	return "ranks " + text.Spans(ranks, 24)
}

// lossText formats the last loss of a rank. It returns "" if there is none.
func lossText(loss *float64, is string) string {
	if loss != nil {
		return number(*loss)
	}
	return is
}

// exitWords says how a rank ended, in a few words.
func exitWords(x job.Exit) string {
	switch {
	case x.Status == job.Exited && x.Aborted:
		return fmt.Sprintf("MPI_Abort, code %d", x.Code)
	case x.Status == job.Exited && x.Fault != "":
		return fmt.Sprintf("code %d, but %s", x.Code, text.Clip(x.Fault, 120))
	case x.Status == job.Exited:
		return fmt.Sprintf("code %d", x.Code)
	case x.Status == job.Signalled:
		return job.SignalName(x.Signal)
	case x.Status == job.Unstarted:
		return "not started: " + text.Clip(x.Text, 120)
	}
	return "lost: " + text.Clip(x.Text, 120)
}
