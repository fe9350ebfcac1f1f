package job

// Severity says what a Finding means for the gang.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"   // the gang is not started
	SeverityWarning Severity = "warning" // the gang is started, the user is told
	SeverityNote    Severity = "note"
)

// Finding is one thing that the preflight has to say.
type Finding struct {
	Check    string   `json:"check"` // the code of the Check that found it
	Severity Severity `json:"severity"`
	Host     string   `json:"host"` // empty when it holds for every host
	Text     string   `json:"text"`
	Hint     string   `json:"hint"`
	// Cause is set on errors and on what a trial died of.
	Cause *Cause `json:"cause,omitempty"`
}

// FirstError returns the first finding that is an error, nil without any.
func FirstError(findings []Finding) *Finding {
	for i := range findings {
		if findings[i].Severity == SeverityError {
			return &findings[i]
		}
	}
	return nil
}
