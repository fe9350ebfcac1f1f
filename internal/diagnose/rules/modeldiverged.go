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
}}
