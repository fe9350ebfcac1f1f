package job

// Severity says how serious a Finding or a sign of poor health is. The Severity of a Finding says whether
// gangrun starts the gang in spite of the Finding.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"   // the gang is not started
	SeverityWarning Severity = "warning" // the gang is started, and the user is warned
	SeverityNote    Severity = "note"
)

// Finding is one thing that the preflight has found.
type Finding struct {
	Check    string   `json:"check"` // the code of the Check that found it
	Severity Severity `json:"severity"`
	Host     string   `json:"host"` // empty if the finding is about every host
	Text     string   `json:"text"`
	Hint     string   `json:"hint"`
	// Cause is set if Severity is SeverityError, and for the failure of a trial.
	Cause *Cause `json:"cause,omitempty"`
}

// FirstError returns the first finding that is an error, or nil.
func FirstError(findings []Finding) *Finding {
	for i := range findings {
		if findings[i].Severity == SeverityError {
			return &findings[i]
		}
	}
	return nil
}
