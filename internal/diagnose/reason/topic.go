package reason

import "github.com/gangrun/gangrun/internal/diagnose/textmatch"

// topic is a subject that a message may have.
type topic struct {
	signature string
	what      *textmatch.Pattern
	// own is true if only a message of the program itself counts. An uncaught exception may have the same words and
	// another subject.
	own bool
}

// topics has the subjects of messages that give no reason of the operating system. If several match, the first counts.
var topics = []topic{
	{"cuda-mismatch", textmatch.New(`(?i)\b(?:cudnn|nccl|cublas|cuda|rocm|hip)\b(?: runtime)? version (?:mismatch|conflict)|\b(?:cuda|rocm) ?[\d.]+ (?:is )?(?:older|newer) than\b|\b(?:cuda|rocm|toolkit|nvcc)\b.{0,60}\b(?:(?:does|do|did)(?: not|n't) match|differs? from|different from|is not the|mismatch\w*)\b.{0,80}\b(?:built|compiled|linked|build|version)\b|\b(?:built|compiled|linked) (?:for|with|against) (?:cuda|rocm) ?[\d.]+\b.{0,60}\b(?:but|while|found|installed)\b.{0,60}\b(?:cuda|rocm|toolkit|[\d.]+)\b`), false},
	{"no-kernel-image", textmatch.New(`(?i)\b(?:built|compiled)\b.{0,20}\bfor (?:sm_|gfx|compute_)\w+.{0,60}\b(?:sm_|gfx|compute_)\w+`), false},
	{"driver-too-old", textmatch.New(`(?i)\bdrivers?\b.{0,40}\b(?:too old|older than|outdated|(?:does|do)(?: not|n't) support cuda|(?:only )?supports? (?:only )?(?:up to )?cuda)\b|\b(?:requires?|needs?|wants?)\b.{0,40}\b(?:nvidia|gpu|cuda|amdgpu) driver\b.{0,20}\d`), false},
	{"linker", textmatch.New(`(?i)\b(?:unable|could not|couldn't|cannot|can't|fail\w*)(?: to)? (?:load|open|find|locate)(?: the| shared| dynamic)* (?:[\w+-]+ )?librar(?:y|ies)\b|\b(?:unable|could not|cannot|fail\w*)(?: to)? (?:dl)?(?:load|open) (?:\S*/)?lib[\w+-]+\.so\b`), false},
	{"address-in-use", textmatch.New(`(?i)\bport\b.{0,40}\b(?:in use|taken|occupied|busy)\b`), false},
	{"no-space", textmatch.New(`(?i)\b(?:only|just) \S+ ?(?:[KMGT]i?B|bytes) (?:is |are )?(?:left|free|available) (?:on|in|at)\b|\b(?:disk|file ?system|scratch|volume|storage|partition|/tmp)\b.{0,30}\b(?:is|was|ran|has run|became) (?:full|out of space)\b|\b(?:no|not enough|insufficient|too little|out of) (?:\w+ )?(?:disk |free |storage |scratch )space\b`), false},
	{"disk-quota", textmatch.New(`(?i)\bquota\b.{0,40}\b(?:exceed\w*|reached|used up|full|exhausted)\b|\b(?:exceed\w*|over|beyond) .{0,30}\bquota\b`), false},
	{"read-only", textmatch.New(`(?i)\bmounted read-?only\b|\bread-only (?:mount|volume|directory|disk)\b`), false},
	{"permission-denied", textmatch.New(`(?i)\bnot (?:authori[sz]ed|permitted|allowed) to (?:access|read|write|open|use|list|create|perform)\b|\b(?:HTTP|status|code)[ :=]*40[13]\b|\bmay not (?:access|read|write|open|use|list|create|perform)\b|\baccess (?:is |was )?(?:denied|refused|forbidden)\b|\binsufficient (?:permissions?|privileges?)\b|\b(?:lacks?|missing|no) (?:\w+ )?permissions?\b|\b(?:expired|invalid|missing) (?:\w+ )?(?:token|credentials?)\b|\b(?:access token|token|credentials?|ticket|password|certificate)s? (?:has |have |is |are |was )?(?:expired|revoked|rejected)\b`), false},
	{"cuda-out-of-memory", textmatch.New(`(?i)\b(?:gpu|device|vram|hbm)\b.{0,30}\bmemory\b.{0,30}\b(?:exhausted|full|insufficient|used up)\b|\b(?:not enough|insufficient|out of|exhausted) (?:gpu|device|vram|hbm)\b|\b(?:(?:fail\w*|unable|could not|cannot)(?: to)? (?:re-?)?allocate|out of memory|not enough memory)\b.{0,60}\bon (?:the )?(?:gpu|device|cuda)\b|\d ?[KMGT]i?B (?:needed|required|wanted) on (?:the )?(?:gpu|device|cuda)\b|\b(?:does not|doesn't|will not) fit (?:in|on|into) (?:the )?(?:gpu|vram|hbm|device|cuda)\b`), false},
	{"native-out-of-memory", textmatch.New(`(?i)\b(?:not enough|insufficient|out of|too little|no more) (?:\w+ )?memory\b|\bmemory (?:is |was )?exhausted\b|\b(?:could not|cannot|can't|failed to|unable to) allocate (?:\w+ ){0,3}(?:\d|memory|array|buffers?|matrix|workspace)`), false},
	{"host-reported-lost", textmatch.New(`(?i)\bheartbeats? (?:from|of|to) (?:host|node|machine) \S+ .{0,30}\b(?:lost|missed|missing|timed out|stopped)\b|\bmark\w* (?:host|node|machine) (?:\S+ )?(?:as )?(?:dead|down|lost)\b|\b(?:node|host|machine) \S+ (?:(?:does not|doesn't|no longer) (?:ping|answers?|responds?)|(?:was |is )?marked (?:as )?(?:down|offline|dead))\b|\b(?:could not|cannot|can't|unable to|failed to) reach (?:host|node|machine) \S|\b(?:lost|gone|dead)\*? (?:node|host)\b`), false},
	{"unreachable", textmatch.New(`(?i)\b(?:link|interface|port|nic|hca)\b(?: of)?(?: \S+)? (?:is |went |goes |has gone )down\b|\bcould not resolve (?:host|address)\b`), false},
	{"input-output-error", textmatch.New(`(?i)\b(?:OST\w*|lustre|gpfs|beegfs|nfs|cephfs?|hdfs|datanodes?|object store|file server)\b.{0,80}\b(?:evict\w*|bad|lost|unavailable|timed? ?out|not respond\w*|stale|gone|down)\b`), false},
	{"checkpoint-exception", textmatch.New(`(?i)\b(?:restart|checkpoint|ckpt|chk|snapshot|saved state)\w*\b.{0,80}\b(?:magic|corrupt\w*|truncated|damaged|incomplete|checksum|crc|not committed|unreadable|premature|inconsistent|too short|shorter than|(?:bytes|records?) (?:less|fewer|short|missing)|cannot be read|(?:has|is) \d+ bytes, expected)\b|\b(?:corrupt\w*|truncated|damaged|incomplete)\b.{0,40}\b(?:restart|checkpoint|ckpt|snapshot)\b`), false},
	{"missing-output-directory", textmatch.New(`(?i)\b(?:cannot|could not|couldn't|can't|failed to|unable to) (?:create|write|save|store|export) (?:to )?(?:(?:the|an?|its|output|result) ){0,2}['"]?[^\s'"]*[\w-]/[^\s'"]*\w`), false},
	{"solution-diverged", textmatch.New(`(?i)\bnon-?finite\b|\b(?:due to|because of|by)(?: an?)? (?:nan|inf)s?\b|\b(?:nan|inf)s?(?: or |/)(?:nan|inf)s?\b|\b(?:nan|inf) (?:\w+ )?(?:norm|residual)\b|\b(?:blew|blown|blows|blowing)[ -]up\b|\bnumerical(?:ly)? (?:instability|unstable)\b|\b(?:residual|energy|drift|norm|velocity|pressure|temperature|density|error|loss|gradient)\w*\b.{0,40}\d(?:\.\d+)?e\+[1-9]\d\b|\bexceeds? (?:the )?diverg\w+ (?:limit|threshold)|\bNaNs? (?:in|at|value|found|detected)\b|\b(?:extreme|unphysical|non-?physical|unrealistic|implausible|runaway)\b.{0,40}\b(?:velocity|speeds?|winds?|temperatures?|pressures?|density|energy|thickness|states?|values?|solution)\b|\b(?:velocity|speeds?|winds?|temperatures?|pressures?|density|energy|thickness|state|solution)\b.{0,40}\bout(?:side)? of (?:\w+ )?(?:bounds|limits)\b`), false},
	{"c-assertion", textmatch.New(`(?i)\b(?:assert(?:ion)?s?|invariants?|(?:pre|post)condition|sanity check|consistency check|self-?check)\b.{0,40}\b(?:fail\w*|violat\w*|broken|(?:does|did|do) not hold|not (?:met|satisfied))\b|\bAssertionError\b`), false},
	{"reported-straggler", textmatch.New(`(?i)\b(?:rank|pe|node|worker|host|task|gpu)s? \S+ (?:is|are) (?:too |very |the |much )?(?:slow\w*|bottleneck|straggler)|\bload imbalance\b.{0,80}\b(?:rank|pe|node|worker|host) ?\d`), true},
	{"bad-format", textmatch.New(`(?i)\b\w*(?:toml|json|yaml|xml|csv|parquet|netcdf)\w*(?:error|exception)\b|\b(?:invalid|malformed|bad|broken) (?:toml|json|yaml|xml|csv)\b`), false},
	{"program-input", textmatch.New(`(?i)\b(?:config\w*|settings?|parameter file|namelist|input (?:file|deck))\b.{0,30}\b(?:key|entry|keyword|option|field|section)\b.{0,60}\b(?:expect\w*|must|should|missing|unknown|unrecogni[sz]ed|invalid|not (?:found|set|given|defined)|required)\b`), false},
	{"program-input", textmatch.New(`(?i)\b(?:files?|data ?sets?|tables?|sheet|namelist|line \d+|columns?|rows?|headers?|sections?|groups?|attributes?)\b.{0,60}\b(?:has no|have no|lacks?|is missing|are missing|is empty|is not an?|or not an?|malformed|truncated)\b|\bnumber of (?:ranks|processes|processors|tasks)\b.{0,40}\b(?:is not|must|should|does not|cannot)\b|\b\d+ (?:ranks|processes|processors|tasks|parts)\b.{0,30}\bbut\b.{0,40}\d|\bnot a (?:power of|multiple of|divisor of)\b|\b(?:cannot|can't|could not|couldn't|unable to|failed to) (?:find|locate) (?:the |an? )?(?:\w+ )?(?:entry|patch|keyword|key|field|section|group|block|parameter|option|variable|column|species|element|region|boundary|material|zone)\b|\b(?:use|try|needs?|requires?) (?:\w+ ){0,3}(?:more|fewer|less) (?:than \d+ )?(?:ranks|processes|processors|cores|tasks)\b|\bparallel\b.{0,20}\bon (?:1|one) (?:processor|process|rank)\b`), true},
}

// About returns the signature of the rule that says what a message is about, or an empty text. own says whether the
// program itself has printed the message.
func About(text string, own bool) string {
	for _, t := range topics {
		if (own || !t.own) && t.what.MatchString(text) {
			return t.signature
		}
	}
	return ""
}
