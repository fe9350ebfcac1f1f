package reason

import "github.com/gangrun/gangrun/internal/diagnose/textmatch"

// verdicts has the reasons why a supervising program ends the programs that it supervises.
var verdicts = []topic{
	{"host-reported-lost", textmatch.New(`(?i)\b(?:node|host|machine|heartbeats? (?:to|from|of))\b.{0,60}\b(?:dead|lost|gone|unreachable|no answer)\b`), false},
	{"own-early-stop", textmatch.New(`(?i)\b(?:not|un|hardly|no longer) ?promising\b|\bhopeless\b|\bprun(?:ed|ing)\b|\brungs?\b|\bearly[- ]?stop\w*|\bstop\w* early\b|\bplateau\w*|\b(?:not|no|never|n't|without)\b.{0,30}\bimprov\w*|\btarget\b.{0,40}\b(?:unreachable|out of reach|not be reached|missed|reached)\b|\b(?:worst|bottom) \d+ ?%|\bhyperband\b|\bsuccessive halving\b|\bmedian (?:stop\w*|rule)|\bpatience\b`), false},
	{"reported-straggler", textmatch.New(`(?i)\bslow(?:er|est|ness|ed)?\b|\bstraggl\w*|\blag(?:s|ging|gard)?\b|\bbottleneck\b|\bis (?:\S+ )?behind\b|\bimbalance\b|\b(?:speed|pace|rate) of (?:the )?(?:others?|other \w+|rest|median)\b|\b(?:while|for what|as|than) (?:all )?(?:the )?(?:others?|rest|median)\b|\b(?:throttl\w+)\b`), false},
	{"no-progress", textmatch.New(`(?i)\b(?:dead-?lock\w*|hung|hang(?:s|ing)?|stuck|frozen|stalled|live-?lock\w*)\b|\b(?:considered|considering|presumed|assumed|looks|seems) (?:\w+ )?(?:dead|lost)\b|\b(?:no|not|without|nothing|never|n't)\b.{0,60}\b(?:progress\w*|output|heartbeats?|steps?|iterations?|advanc\w*|respon\w*|activity|written|printed|logged|log \w+|updat\w*|grown|changed|checkpoint|sign)\b.{0,60}\d|\b(?:has been|still|stayed|remained) (?:at )?\S+ for \d|\butili[sz]ation (?:of )?0 ?%.{0,40}\bfor \d|\blast \w+ (?:was |is )?\d+ ?\w+ ago\b|\bin state D\b`), false},
}

// noVerdict matches words with which a program says that all is well.
var noVerdict = textmatch.New(`(?i)\b(?:no|0|zero|none|without|never) (?:\w+ )?(?:slow\w*|straggl\w*|stall\w*|hang\w*|hung|stuck|dead-?lock\w*|early)\b|\bconverged\b|\ball (?:is )?(?:well|good|healthy|ok)\b`)

// Verdict returns the signature of the rule for the reason with which a supervising program has ended other programs.
// text is what the supervising program says. Verdict returns an empty text if text gives no such reason.
func Verdict(text string) string {
	if noVerdict.MatchString(text) {
		return ""
	}
	for _, v := range verdicts {
		if v.what.MatchString(text) {
			return v.signature
		}
	}
	return ""
}
