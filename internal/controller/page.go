package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/gangrun/gangrun/internal/runpage"
	"github.com/gangrun/gangrun/internal/vitals"
)

const (
	// pageLimit limits the time for reading the journal and the logs of a run for its page, after the end of the gang.
	pageLimit = 10 * time.Second
	// hurriedPageLimit limits the time for reading the journal if the user is in a hurry. The logs are not read then.
	hurriedPageLimit = time.Second
	// plotRows is the height of the plot in the closing summary, without its axis and caption. There is no plot if the
	// terminal has fewer columns than plotColumns.
	plotRows    = 6
	plotColumns = 70
	// sayColumns is the number of columns of the text "gangrun: " before each line.
	sayColumns = 9
)

// page writes the page of the run and returns the plot of the closing summary. The journal of the run must be closed.
// After hurried has ended, page takes at most hurriedPageLimit. An error does not matter to the run, because the page
// can be made again at any time.
func (s *session) page(hurried context.Context, life *vitals.Vitals) (plot []string) {
	ctx, cancel := pageTime(hurried)
	defer cancel()
	page, err := runpage.Read(ctx, hurried, s.run)
	if err == nil {
		err = page.Save(runpage.Now{Time: time.Now(), Vitals: life})
	}
	if err != nil {
		s.lacks("the page of the run could not be written", err, fmt.Sprintf("gangrun report --html FILE %s makes it", s.run.ID))
	}
	if columns := s.show.Screen.Columns(); page != nil && columns >= plotColumns {
		return page.Plot(min(columns, 120)-sayColumns, plotRows)
	}
	return nil
}

// pageTime returns the context for making the page.
func pageTime(hurried context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(hurried), pageLimit)
	stop := context.AfterFunc(hurried, func() {
		select {
		case <-ctx.Done():
		case <-time.After(hurriedPageLimit):
			cancel()
		}
	})
	return ctx, func() { stop(); cancel() }
}
