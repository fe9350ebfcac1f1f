package record

import (
	"encoding/json"
	"fmt"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/vitals"
)

// Vitals returns the newest figures of a run's ranks. It returns nil if there are none, for example because no gang
// runs.
func Vitals(run home.Run) (*vitals.Vitals, error) {
	data, err := run.ReadVitals()
	if err != nil || data == nil {
		return nil, err
	}
	var v vitals.Vitals
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("cannot read the live file of run %s: %w", run.ID, err)
	}
	return &v, nil
}
