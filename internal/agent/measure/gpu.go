package measure

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/job"
)

// gpuCode measures the GPUs.
//
//go:embed gpu.py
var gpuCode []byte

// gpuTime is how long gpuCode may take. The import of torch alone may take some seconds.
const gpuTime = 15 * time.Second

// gpus measures the GPUs with the Python interpreter at a path. If the path is empty, it looks for python3 in
// the ranks' PATH. If there is no interpreter, it measures nothing.
func (m Measurer) gpus(ctx context.Context, python string) []job.Speed {
	if python == "" {
		var err error
		if python, err = process.LookPath("python3", "/", m.Env); err != nil {
			return nil
		}
	}
	failed := func(err string) []job.Speed { return []job.Speed{{Of: "GPUs", Error: err}} }
	ctx, cancel := context.WithTimeout(ctx, gpuTime)
	defer cancel()
	// With -u, the output of the program is complete even if the program does not end in time.
	out, err := m.Children.RunHelperFor(ctx, gpuTime, python, []string{python, "-u", "-"}, "/", m.Env, gpuCode, false)
	var answer struct {
		Error string
		GPUs  []struct {
			Index                int
			Model, Error         string
			Matmul, Copy, Upload float64
		}
	}
	if badJSON := json.Unmarshal(out, &answer); badJSON != nil {
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return failed(fmt.Sprintf("%s has not measured them within %s", python, gpuTime))
		case err == nil:
			err = badJSON
		}
		return failed(err.Error())
	}
	if answer.Error != "" {
		return failed(answer.Error)
	}
	var speeds []job.Speed
	for _, g := range answer.GPUs {
		of := fmt.Sprintf("GPU %d", g.Index)
		if g.Error != "" {
			speeds = append(speeds, job.Speed{Of: of, Model: g.Model, Error: g.Error})
			continue
		}
		speeds = append(speeds,
			job.Speed{Kind: job.SpeedMatmul, Of: of, Model: g.Model, Value: g.Matmul},
			job.Speed{Kind: job.SpeedGPUCopy, Of: of, Model: g.Model, Value: g.Copy},
			job.Speed{Kind: job.SpeedUpload, Of: of, Model: g.Model, Value: g.Upload})
	}
	return speeds
}
