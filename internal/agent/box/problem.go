package box

import (
	"errors"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher/container"
)

// Problem returns the ImageFact with which this host reports that it cannot start a container from the image
// called name. err is the reason. The field Problem of the ImageFact says which kind of error err is.
func Problem(name string, err error) job.ImageFact {
	fact := job.ImageFact{Name: name, Problem: job.ImageFailed, Error: err.Error()}
	if e, ok := errors.AsType[*container.UnavailableError](err); ok {
		switch {
		case e.Missing:
			fact.Problem, fact.Others = job.ImageNoRuntime, container.Others()
		case e.Forbidden:
			fact.Problem, fact.Group = job.ImageForbidden, e.Group
		}
	}
	if _, ok := errors.AsType[*container.MissingError](err); ok {
		fact.Problem = job.ImageMissing
	}
	if e, ok := errors.AsType[*container.PullError](err); ok {
		switch {
		case e.Missing:
			fact.Problem = job.ImageMissing
		case e.Refused:
			fact.Problem = job.ImageRefused
		default:
			fact.Problem = job.ImageUnpulled
		}
	}
	if _, ok := errors.AsType[*container.PlatformError](err); ok {
		fact.Problem = job.ImagePlatform
	}
	if _, ok := errors.AsType[*container.BrokenError](err); ok {
		fact.Problem = job.ImageBroken
	}
	if _, ok := errors.AsType[*container.DeviceError](err); ok {
		fact.Problem = job.ImageDevice
	}
	if _, ok := errors.AsType[*container.UserError](err); ok {
		fact.Problem = job.ImageNoUser
	}
	if _, ok := errors.AsType[*container.RootlessError](err); ok {
		fact.Problem = job.ImageRootless
	}
	if _, ok := errors.AsType[*mountError](err); ok {
		fact.Problem = job.ImageMount
	}
	if container.Full(err) {
		fact.Problem = job.ImageFull
	}
	return fact
}
