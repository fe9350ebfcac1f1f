package job

// FlightRecord is what the flight recorder of PyTorch has written down about one rank: which collectives the
// rank has called.
type FlightRecord struct {
	Rank    int                     `json:"rank"` // the global rank
	Version string                  `json:"version"`
	Groups  map[string]ProcessGroup `json:"groups"` // process groups of the rank, by their names
	// Calls has calls in the order in which they were made. After flightrecord.Brief, it has only the newest
	// calls and the oldest incomplete ones of each process group.
	Calls []CollectiveCall `json:"calls"`
}

// ProcessGroup is a process group of PyTorch, as one of its ranks sees it.
type ProcessGroup struct {
	Desc  string `json:"desc,omitempty"` // such as "default_pg" or "EXPERT_MODEL_PARALLEL_GROUP"
	Ranks []int  `json:"ranks"`          // global ranks
	// The sequence numbers of the newest collectives that were enqueued, started and completed; -1 if there is
	// none. LastStarted is also -1 if the recorder does not measure times.
	LastEnqueued  int64 `json:"last_enqueued"`
	LastStarted   int64 `json:"last_started"`
	LastCompleted int64 `json:"last_completed"`
}

// CollectiveCall is the call of a collective by one rank.
type CollectiveCall struct {
	Group string `json:"group"` // name of the process group
	Seq   int64  `json:"seq"`   // its number among the collectives of the group
	Op    string `json:"op"`    // such as "nccl:all_reduce"
	State string `json:"state"` // "scheduled", "started" or "completed"
	// PeerToPeer is true for a send or a receive. These calls have sequence numbers of their own.
	PeerToPeer bool `json:"p2p,omitempty"`
	// Retired is true if PyTorch's watchdog no longer waits for the collective. If Retired is true and State is not
	// "completed", the collective has timed out.
	Retired bool `json:"retired,omitempty"`
	// In and Out are the sizes and types of its input and output tensors, as text that can be compared. InSize
	// and OutSize are how many numbers these tensors have together.
	In      string `json:"in,omitempty"`
	Out     string `json:"out,omitempty"`
	InSize  int64  `json:"in_size,omitempty"`
	OutSize int64  `json:"out_size,omitempty"`
	// Where is the place in the program that called the collective, as in "train.py:120 average", or "".
	Where string `json:"where,omitempty"`
}

// CollectiveProblem says what is wrong with the first collective of a process group that did not succeed.
type CollectiveProblem struct {
	Group string `json:"group"`
	Desc  string `json:"desc,omitempty"`
	Seq   int64  `json:"seq"`
	Op    string `json:"op"`
	// Where is the place in the program at which a rank that waits has called the collective, or "".
	Where string `json:"where,omitempty"`
	// Missing are the ranks of the group that have a record, but did not get as far as this collective. A rank
	// that hangs inside the call itself may be among them, because it has not recorded the call yet.
	Missing []int `json:"missing,omitempty"`
	// Differing are the ranks whose operation, or whose sizes or types of tensors, differ from those of
	// most ranks.
	Differing []int `json:"differing,omitempty"`
	// Silent are the ranks of the group that have no record. If there are such ranks, and Missing and Differing
	// are empty, it is not known which rank is to blame.
	Silent []int `json:"silent,omitempty"`
	// Waiting are the ranks that have called the collective and still wait in it.
	Waiting []int `json:"waiting,omitempty"`
}
