package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const divergedHint = "lower the learning rate, clip gradients, warm up longer, or look at the data of that step; resume from a checkpoint before the loss rose"

var modelDiverged = []Rule{{
	Category: job.ModelDiverged, Signature: "loss-not-finite", Confidence: 0.95,
	Meaning: "the program found that its loss or gradients are no longer finite numbers, and stopped",
	Hint:    divergedHint,
	Classes: []string{"*"},
	Needles: []string{"loss is nan", "loss is inf", "nan loss", "model diverged", "non-finite loss", "loss is not finite", "nan in local", "nan or inf", "nan and/or inf", "returned nan values",
		"loss scale already at minimum", "minimum loss scale reached", "loss is probably exploding", "contains nan", "encountered nan", "found nan", "nan detected", "loss diverged", "is non-finite"},
}, {
	Category: job.ModelDiverged, Signature: "loss-not-finite", Confidence: 0.95,
	Hint:    divergedHint,
	Classes: []string{"NanLossDuringTrainingError"},
}, {
	Category: job.ModelDiverged, Signature: "loss-not-finite", Confidence: 0.8, Traits: Weak,
	Hint:    divergedHint,
	Needles: []string{"loss is nan", "loss is inf", "loss became nan", "model diverged", "loss diverged", "non-finite loss", "loss is not finite", "encountered nan", "nan loss", "training diverged", "nan detected"},
	Unless:  textmatch.New(`(?i)skip|ignor|continu`),
}, {
	Category: job.ModelDiverged, Signature: "loss-not-finite", Confidence: 0.85,
	Hint: divergedHint,
	Needles: []string{"loss scale already at minimum", "minimum loss scale reached", "unexpected result nan", "found nan in local", "found inf in local", "nan in loss", "stopping training", "monitored metric", "loss is nan, stopping", "model has diverged", "gradient norm is nan", "grad norm is nan", "gradients are nan", "nan/inf", "non-finite", "infinite loss", "loss exploded", "training has diverged", "nan encountered",
		"is not finite", "became nan", "is nan or inf", "diverging", "not-a-number", "solution diverged", "diverged"},
	Match: textmatch.New(`(?i)loss scale already at minimum|minimum loss scale reached|unexpected result (?:nan|inf)|found (?:nan|inf)\b.{0,60}(?:loss|grad)|loss\b.{0,30}\b(?:is|was|became|has been|=|:)\s*(?:nan|inf)\b.{0,60}\b(?:stop\w*|abort\w*|exit\w*|terminat\w*|quit\w*|halt\w*)|monitored metric .* is not finite|(?:model|training|loss|run|optimi[sz]ation|solution|solver|simulation) (?:has )?diverged|(?:stop\w*|abort\w*|exit\w*|terminat\w*|halt\w*)\b.{0,60}\b(?:nan|inf|non-?finite|diverg\w*)\b|` +
		`(?:grad\w*|gradient) norm\b.{0,20}\b(?:nan|inf|non-?finite|not finite)|non-?finite (?:loss|grad\w*)\b.{0,40}(?:stop|abort|exit|terminat|rais|consecutive|times)|\bnan (?:loss|encountered|detected)\b.{0,60}(?:stop|abort|exit|terminat)`),
	Unless: textmatch.New(`(?i)skip|ignor|continu|retry|recover|not diverged|did not diverge|resum|zero-?ing|early stopping patience|warning`),
}}
