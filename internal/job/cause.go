package job

import "encoding/json"

// Cause is why an attempt failed.
type Cause struct {
	// Category is empty, and null in JSON, if no cause was found.
	Category Category `json:"category"`
	// Signature is the finer kind of the cause within its category, as in
	// "python-zero-division".
	Signature string `json:"signature"`
	Rank      int    `json:"rank"` // the rank that failed first; -1 if no rank failed
	Host      string `json:"host"`
	// Confidence is from 0 to 1. It is 1 if a record, such as an exit status, proves the cause,
	// and less if only a text suggests the cause.
	Confidence float64 `json:"confidence"`
	Text       string  `json:"text"` // one sentence: what happened
	Hint       string  `json:"hint"` // what to do about it
	Retry      Action  `json:"retry"`
	// Artefact names what the cause is about, such as a file, port, library, GPU or host. It is empty if there
	// is no such thing. Without progress in between, a run is retried only once for the same cause with the
	// same artefact.
	Artefact string `json:"artefact,omitempty"`
	// Evidence has the lines that show the cause; the last one is the decisive line.
	Evidence []Line `json:"evidence"`
	// After has up to 20 lines that follow the decisive line in the same output. The decisive
	// line may be only the beginning of a message.
	After []Line `json:"after,omitempty"`
	// Also has the other ranks on which the same failure arose independently, in order.
	Also []int `json:"also,omitempty"`
	// Cascades counts the other ranks and programs that failed as a consequence.
	Cascades int `json:"cascades,omitempty"`
	// Looks says whether the job seems to have failed or succeeded, judged only by its logs. It is empty if
	// gangrun knows how the ranks ended.
	Looks Looks `json:"looks,omitempty"`
}

// Looks says whether a job seems to have failed or succeeded, judged only by its logs.
type Looks string

// The values of Looks.
const (
	LooksFailed     Looks = "failed"
	LooksSuccessful Looks = "successful"
)

// MarshalJSON encodes an empty Category, and a Rank of -1, as null.
func (c Cause) MarshalJSON() ([]byte, error) {
	type plain Cause
	out := struct {
		Category *Category `json:"category"`
		plain
		Rank *int `json:"rank"`
	}{plain: plain(c)}
	if c.Category != "" {
		out.Category = &c.Category
	}
	if c.Rank >= 0 {
		out.Rank = &c.Rank
	}
	if out.Evidence == nil {
		out.Evidence = []Line{}
	}
	return json.Marshal(out)
}

// UnmarshalJSON is the reverse of MarshalJSON.
func (c *Cause) UnmarshalJSON(data []byte) error {
	type plain Cause
	in := struct {
		Category *Category `json:"category"`
		*plain
		Rank *int `json:"rank"`
	}{plain: (*plain)(c)}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	c.Category, c.Rank = "", -1
	if in.Category != nil {
		c.Category = *in.Category
	}
	if in.Rank != nil {
		c.Rank = *in.Rank
	}
	return nil
}
