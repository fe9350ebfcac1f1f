package agent

import (
	"os"
	"sync"
	"time"
)

// clockEnv is the variable by which a test starts an agent whose clock is wrong:
// by how much it is ahead, as time.ParseDuration reads it.
const clockEnv = "GANGRUN_TEST_CLOCK"

var ahead = sync.OnceValue(func() time.Duration {
	by, _ := time.ParseDuration(os.Getenv(clockEnv)) // 0 where nobody has set it
	return by
})

// now is the host's clock, by which the agent tells every time that it tells. Limits
// and intervals go by time.Now.
func now() time.Time { return time.Now().Add(ahead()) }
