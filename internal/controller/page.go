package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/gangrun/gangrun/internal/runpage"
	"github.com/gangrun/gangrun/internal/vitals"
)

const (
	// pageLimit bounds how long the journal and the logs of a run are read for its page, after the gang has ended.
	pageLimit = 10 * time.Second
	// hurriedPageLimit bounds how long the journal is read when the user has no time. The logs are not read then.
	hurriedPageLimit = time.Second
	// plotRows is the height of the plot in the closing summary, without its axis and caption. A terminal with less than
	// plotColumns has none.
	plotRows    = 6
	plotColumns = 70
	// sayColumns are those that "gangrun: " takes before each line.
	sayColumns = 9
)

// page writes the page of the run, after its journal is closed, and returns the plot of the closing summary. When hurried has
// ended, it takes no longer than hurriedPageLimit. The page can be made again at any time: that it cannot be written does not
// matter to the run.
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

// pageTime returns the context in which the page is made.
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
