// Package bridging starts the work of the hidden command "bridge" before Go initialises the rest of the program. A
// bridge needs package net, which Go initialises late. This package is apart from package early, so that early does
// not wait for net.
package bridging

import (
	"os"

	"github.com/gangrun/gangrun/internal/remote/bridge"
)

func init() {
	if len(os.Args) > 1 && os.Args[1] == "bridge" {
		os.Exit(bridge.Main(os.Args[2:]))
	}
}
