//go:build soak

package container_test

import (
	"testing"

	"github.com/gangrun/gangrun/launcher/suite"
)

func TestSoakSuite(t *testing.T) { suite.Run(t, suiteBed(t)) }
