// Package outlook finds out from single lines of a log how the program goes on: whether its work is done, goes
// on, or has failed. This is needed because logs alone do not say how the ranks ended. The lines after a sign
// of failure show whether the program has survived the failure.
package outlook

import (
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/message"
	"github.com/gangrun/gangrun/internal/diagnose/pytrace"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// Mark is what a line says about how its program goes on.
type Mark uint16

// The marks. A line may have several.
const (
	Aside    Mark = 1 << iota // not printed by the program: empty, a part of a sign of failure, or a launcher's line
	Long                      // too long to say anything
	Done                      // the work is done, or a process ended with code 0
	All                       // all of several things are done
	Zero                      // a process ended with code 0, or nothing failed
	Epilogue                  // closing words that scripts and programs also print after a failure
	Recovery                  // the program goes on in another way
	Advance                   // the line counts work, as with the number of a step
	Error                     // an error is announced
	Bad                       // the script or job failed
)

// Conclusive reports whether a line, as the last line of a log, shows that the work is done.
func Conclusive(t string) bool {
	if shellLine.MatchString(t) {
		return false
	}
	if _, said := message.Record(t); said != "" {
		t = said
	}
	if i := strings.LastIndex(t, ". "); i >= 0 { // only the last sentence counts
		t = t[i+2:]
	}
	return len(t) < longLine && (conclusive.MatchString(t) || artefact.MatchString(t) && !midway.MatchString(t) && !few(t)) && !tornDown.MatchString(t) && !withCode.MatchString(t) && (!incomplete.MatchString(t) || zeroFailed.MatchString(t))
}

var conclusive = textmatch.New(`(?i)\b(?:written|wrote|saved|done|finished|completed|ok|passed|exported|uploaded|converged|success\w*|generated)\b|\bcomplete[.!]?\s*$|\bnormal(?:ly)? (?:end|exit|stop|completion|termination)\b|\b(?:ends?|ended|exits?|exited|stops?|stopped|terminates?|terminated) (?:normally|cleanly|as planned)\b|\breached (?:the |its )?(?:final|last|planned|end)\b|\b(?:went|all|ran|is) (?:well|fine|good)\b|\bresults? (?:is|are) valid\b|^\W*best\b.{0,80}\d|^\s*(?:perplexity|eval_\w+|test_\w+) += `)

// artefact matches a line about a file of results: what is in the file, or what was put there.
var artefact = textmatch.New(`(?i)(?:^|[ >"'(/=])[\w@%+-][\w.@%+/-]*\.` + results + `["']?(?:: |, | |\()[^:]{0,40}\d|(?:->|=>|\bto|\bin|\binto|[,:]) ["']?[\w./@%+-]+\.` + results + `\b["']?(?: ?[,(].*)?\W*$`)

const results = `(?:csv|tsv|nc4?|npy|npz|h5|hdf5?|zarr|parquet|jsonl?|pt|pth|safetensors|onnx|pkl|rds|rdata|dat|vt[kpu]|pvd|xdmf|xyz|pdb|gro|xtc|trr|dcd|bam|cram|vcf|bcf|bed|gff|fa|fasta|fits|root|sdf|cube|png|pdf|svg|html|tiff?|gif|mp4|webm|wav|arrow|feather|mat|gguf|grb|grib2?|las|tfrecord|sqlite|db|xlsx|tex|md)(?:\.(?:gz|bz2|xz|zst))?`

// midway matches a line about a file that a program reads, or that it also leaves behind if it fails.
var midway = textmatch.New(`(?i)\b(?:read\w*|load\w*|open\w*|from|input|pars\w+|using|found|import\w*|config\w*|args|see|wait\w*|dump\w*|stack|debug\w*|profil\w*|partial|ckpt|checkpoint\w*|restart\w*|chk|epoch|step|iter\w*|line|crash\w*|report\w* to|trying|download\w*|missing|bad|invalid|corrupt\w*|truncated|empty)\b`)

// tornDown matches lines about things that a program stops after a failure, too.
var tornDown = textmatch.New(`(?i)\bsuccessfully (?:stopped|closed|shut ?down|disconnected|released|removed|deleted|killed)\b`)

// few reports whether a line says that less than half of a number of things are done.
func few(t string) bool {
	m := counted.FindStringSubmatch(t)
	if m == nil {
		return false
	}
	done, err := strconv.Atoi(m[1])
	all, err2 := strconv.Atoi(m[2])
	return err == nil && err2 == nil && 2*done < all
}

// shellLine matches the beginning of a shell's message about a line of its script. The message may quote that line.
var shellLine = textmatch.New(`^\S+: (?:line )?\d+: `)

// withCode matches a report that a program ended with a code other than 0.
var withCode = textmatch.New(`(?i)\bwith (?:exit )?(?:code |status )?-?[1-9]\d*(?:[^\d.:%]|[.:]?$|\. )`)

// Of returns the marks of a line.
func Of(t string) Mark {
	if level, said := message.Record(t); said != "" && len(said) < len(t) {
		m := Of(said)
		if level >= message.Error && m&(Recovery|Done) == 0 {
			m = m&^Advance | Error
		}
		return m
	}
	switch {
	case exitsWell.MatchString(t):
		return Done
	case connects.MatchString(t):
		return Recovery
	case runStop.MatchString(t), ofTests.MatchString(t) && !failedTests.MatchString(t):
		return Done | All
	case ofJob.MatchString(t):
		return Done | All | Zero
	case succeeds.MatchString(t) && !oneProcess.MatchString(t):
		return Done | Zero
	case t == "" || strings.HasPrefix(t, "Thread 0x") || strings.HasPrefix(t, "Current thread 0x") || faultLine.MatchString(t) || kernelLine.MatchString(t) || message.Teardown.MatchString(t) || message.Separator(t) || account.MatchString(t) || checker.MatchString(t) || strings.Contains(t, "(+0x") || strings.Contains(t, "[0x"):
		return Aside
	case len(t) > longLine:
		return Long
	case scriptFailed.MatchString(t) || endedWith.MatchString(t) && !goesOn.MatchString(t):
		return Bad
	case oneOfMany.MatchString(t):
		return Advance
	case zeroExit.MatchString(t) && !oneProcess.MatchString(t):
		return Done | Zero
	case studied.MatchString(t):
		return Done
	case tally.MatchString(t):
		return 0
	case badExit.MatchString(t) && !zeroFailed.MatchString(t) && !toldToEnd.MatchString(t) && !Recovers(t):
		return Bad
	case noErrors.MatchString(t):
		return Done | Zero
	case completes(t):
		return Done
	case counts(t):
		return All
	case epilogue.MatchString(t):
		return Epilogue
	}
	m := Mark(0)
	if Recovers(t) && !OfScript(t) {
		m |= Recovery
	}
	if message.Announces(t) {
		m |= Error
	} else if message.Advance.MatchString(t) || workUnit.MatchString(t) {
		m |= Advance
	}
	if m == 0 && OfScript(t) && !Troubled(t) {
		return Epilogue
	}
	return m
}

// connects matches what NCCL prints when it goes on after a connection has failed.
var connects = textmatch.New(`NCCL INFO .*(?:\bretrying\b|Init COMPLETE)`)

// faultLine matches a frame that Python's fault handler prints.
var faultLine = textmatch.New(`^ +File "[^"]+", line \d+ in `)

// succeeds matches a line with which a launcher, a shell or a service reports that the program ended with code 0.
var succeeds = textmatch.New(`(?i)^(?:[\w-]+ ){0,2}(?:status|state|result|outcome)\W{1,3}(?:success\w*|succeeded|completed|passed)\W*$|^\++ exit 0$|\b(?:returned|returns) 0\.?$|\bworker group successfully finished\b|WorkerState\.SUCCEEDED`)

// checker matches a line of a tool such as Valgrind, which checks the memory of a program while the program runs.
var checker = textmatch.New(`^==\d+==(?: |$)`)

// runStop matches the end of a run in the log of MLPerf (https://github.com/mlcommons/logging), the end of a job of
// Spark, and the verdict of HPCG, HPL, the NAS benchmarks, STREAM or Ray on a run.
var runStop = textmatch.New(`"key": "(?:run_stop|status)".*"(?:status|value)": "success"|\bDAGScheduler: Job \d+ finished: \w+ at \S+:\d|\bHPCG result is VALID\b|^\s*0 tests completed and failed residual checks|^ ?Verification +[=:] +SUCCESSFUL|^Solution Validates: |\bTrial status: [1-9]\d* TERMINATED$`)

// helper matches a shell's report that a command which only helps a script was ended. Such a command waits, watches or
// copies.
var helper = textmatch.New(`^\S+: line \d+: +\d+ (?:Killed|Terminated|Hangup|Interrupt|Quit|Broken pipe)(?: \(core dumped\))? {2,}(?:[({] )?(?:(?:exec|nohup|setsid|sudo|nice|timeout) (?:-\S+ )*(?:\S+ )??)?(?:\S*/)?(?:sleep|nvidia-smi|rocm-smi|dcgmi|tail|watch|vmstat|iostat|mpstat|pidstat|dstat|sar|top|htop|free|tcpdump|tensorboard|mlflow|jupyter\S*|inotifywait|rsync|rclone|tee|ssh|while|yes|stress(?:-ng)?|\S*(?:monitor|sampler|(?:gpu|cpu|mem|net|io|disk|sys|power|perf|node|host|temp|smi|nv)[_-]?mon|logger|heartbeat|keep-?alive|prefetch|progress|telemetry|exporter|collector)\S*)\b`)

// Helper reports whether a shell reports in a line the end of a command that only helps a script, such as sleep or
// nvidia-smi.
func Helper(t string) bool { return helper.MatchString(t) }

// scriptFailed matches the line in which torchrun names the script that failed.
var scriptFailed = textmatch.New(`^\S+ FAILED$`)

var (
	// endedWith matches the words of a script that something ended with a code other than 0.
	endedWith = textmatch.New(`(?i)\b(?:ended|failed|stopped|finished|left|exited|died)\b.{0,40}\((?:exit )?code:? [1-9]\d{0,2}\)|\b(?:leav|quitt?)(?:e?s|ed|ing)? (?:early )?with [1-9]\d{0,2}$`)
	// goesOn matches words of a program that tries again or does something else.
	goesOn = textmatch.New(`(?i)\bre-?(?:try|tries|tri|start|run|queue|submit|spawn|launch|plac|creat|build|fetch|schedul|assign|dispatch)\w*|\bagain\b|\bcontinu\w+|\bignor\w+`)
)

// noErrors matches the line with which a test of MPI says that it has passed, and the line with which a program counts
// its parts, none of which has failed.
var noErrors = textmatch.New(`(?i)^\s*no errors\b\W*\d*\W*$|\b\d+ (?:tests?|checks?|cases?|assertions?|specs?)\b.{0,20}[^\w-]0 (?:failures?|errors?|failed)\b|^\W*[1-9]\d* \w+(?: \w+)?[,;] (?:and )?0 (?:failures?|errors?|failed)\W*$`)

// longLine is the length in bytes from which a line is too long to say anything.
const longLine = 400

// oneOfMany is a test or trial that passed, or a checkpoint that was saved, while others may follow.
var oneOfMany = textmatch.New(`(?i)^\s*\d+/\d+ Test +#\d+:.*\bPassed\b|\bPASSED +\[ *\d+%\]|^\s*PASSED +\S+::|::\S+ +PASSED\b|\bcheckpoint\b.{0,20}\bfor (?:step|iteration|epoch) \d+.*\bsuccessfully`)

// studied matches the end of a search of parameters. Some of its trials may have failed.
var studied = textmatch.New(`(?i)\b(?:study|search|sweep|tuning|optimi[sz]ation) (?:is )?(?:finished|completed?|done)\b.*\b[1-9]\d* (?:complete|finished|succe|pruned)\w*`)

var (
	// completion matches a line with which a program says that its work is done.
	completion = textmatch.New(`(?i)\b(?:training|train|run|evaluation|eval|inference|benchmark|simulation|calculation|analysis|pipeline|pretraining|fine-?tuning|experiment|suite|sweep|search|conversion|generation|all(?: \w+){0,2} (?:ranks?|tests?|steps?|epochs?|tasks?|checks?|passes|files|jobs|checkpoints?|chunks?|shards?|samples?))\b.{0,40}\b(?:completed?|finished|done|succeeded|successful(?:ly)?|passed|ok|over|written)\b|` +
		`\b(?:completed|finished|terminated|ended) (?:successfully|normally|cleanly|without errors?|ok)|\bsuccessfully (?:completed|finished|ended|trained|saved|wrote|written)|` +
		`\b(?:saved?|wrote|written|exported|uploaded|stored)\b.{0,80}\b(?:final|best|model|weights|results?|metrics|output|report|artifacts?|predictions|\w+\.(?:pth?|ckpt|npz?|h5|onnx|bin|safetensors|csv|json|parquet|txt))\b|` +
		`\b(?:final|best|model|weights|results?|metrics|output|report|predictions)\b.{0,60}\b(?:saved|written|exported|uploaded|stored)\b|\| saved \||` +
		`^\s*=+ .*\b\d+ passed\b.*=+\s*$|^OK \(\d+ tests?|^OK \((?:expected failures|skipped)=|^OK$|^installed (?:to|in|into) /|'train_runtime': \d|(?:^|[^\w-])0 failed\b|^\s*no errors\s*$|\bresult: pass|\bPASSED\b|\bJOB DONE\b|\bconvergence (?:has been )?(?:achieved|reached)\b|\bconverged\b|^total time:? .*\bsteps?\b|\breached max_steps\b|\bmax_(?:steps|epochs|time)\b.{0,12} reached\b|\b(?:finished|completed|did|ran) (?:all )?\d+ (?:\w+ )?(?:iterations?|steps|epochs|updates|trials|samples|files|tasks) in\b|\bnormal termination\b|\bjob (?:completed|succeeded|done)\b`)
	// measure matches a result. A program that trains may print such a line for each epoch, too.
	measure = textmatch.New(`(?i)\b(?:final|best|test|val(?:idation)?|overall)[ _-](?:\w+[ _-]){0,2}(?:acc(?:uracy)?|loss|f1|score|perplexity|ppl|auc|rmse|mae|bleu|energy|reward|throughput|trial|params?)\b\W{0,4}[-+\d{]`)
	// epilogue matches what scripts and programs also print after a failure.
	epilogue = textmatch.New(`(?i)^\W*(?:done|finished|success|completed|all done|bye|ok|end of (?:run|job|program|simulation|output)|exiting(?: normally)?|the end)\b\W*(?:at .*|on .*|in .*|:? .{0,40})?$|` +
		`\b(?:total|elapsed|wall|walltime|wall-clock|training|run|running|execution)[ _-]?(?:wall[ _-]?)?(?:time|clock|elapsed)\b[^/]{0,20}\d|\b(?:job|script|step|\w+) (?:done|finished|ended|completed) at\b|^\W*\w+ done\.?$`)
	// zeroExit matches a report that a process ended with code 0.
	zeroExit = textmatch.New(`(?i)\bexit(?:ed)?(?: with)?(?: |_|-)?(?:code|status|value)?\W{0,3}0\b(?:[^.:\d]|$)|\b(?:rc|return ?code|status)\W{0,3}0\b(?:[^.:\d]|$)|WorkerState\.SUCCEEDED|worker group successfully finished|\bState: COMPLETED\b|^Status:\s+Succeeded|\bSucceeded\b.*\bReason: Completed|Reason:\s+Completed|ExitCode=0:0`)
	// incomplete matches words with which a line does not say that the work is done, even if it matches completion.
	incomplete = textmatch.New(`(?i)\b(?:not|never|fail(?:ed|ure|s)?|error|errors|abort\w*|unable|cannot|can't|could not|couldn't|incomplete|unsuccessful\w*|without completing|before|until|killed|cancell?ed|traceback|timed? ?out|exceeded|terminating|will be|waiting|resum\w+|warm-?up|loaded|loading|\w+\.(?:sh|bash|slurm|sbatch|pbs)|crash\w*|emergency|stage \d+ of)\b`)
	zeroFailed = textmatch.New(`(?i)(?:^|[^.\w-])(?:0|no|zero|without) (?:\w+ )?(?:fail\w*|errors?)\b|\berrors?\W{1,3}0\b|\b(?:with|code|rc|status)\W{0,2}0\b|\b(?:failed|failures?)(?: \w+)?(?:[:=]|) *0\b`)
	// oneProcess matches words of a line with an exit code that is only about one of several processes.
	oneProcess = textmatch.New(`(?i)\b(?:\w*worker(?:-?\d+)? (?:process |\d|pid|exit)|\w*worker-\d+|child|subprocess|\w*pool|thread|sub-?task|stage|task)\b`)
	// exitsWell matches what a launcher prints about each process that ends well.
	exitsWell = textmatch.New(`\bProcess \d+ exits successfully`)
	// toldToEnd matches the end of a worker that was asked to end.
	toldToEnd = textmatch.New(`(?i)\bexit ?code:? -15\b`)
	// counted matches "9 of 9 chunks" or "step 100/100".
	counted = textmatch.New(`(?:^|[\s(\[|])(\d+)(?: ?/ ?| of |of| [a-z]+ of )(\d+)(?:$|[\s)\]|,;:])`)
	// badExit matches a report that a process, the script or the job failed.
	badExit = textmatch.New(`(?i)\bexit(?:ed|ing)?(?: with)?(?: |_|-)?(?:code|status|value)?\W{1,3}-?[1-9]\d{0,2}\b(?:[^.:\d%]|$)|\b(?:rc|ret|return[ _]?code|status|exit|code)\b["']?\W{1,3}-?[1-9]\d{0,2}\b(?:[^.:\d%]|$)|\bnon-?zero exit|\b(?:job|run|training|script|stage|step|rule|command|pipeline|process|task|workflow|trial|program|container|pod|test)\b.{0,40}\b(?:has )?(?:failed|FAILED|died|crashed)\b|^FAILED|\bJOB FAILED\b|State: FAILED|Status:\s+Failed|\bexiting because\b|WorkerState\.FAILED|^make: \*\*\*|\bgiving up\b|ExitCode=[1-9]|\bexit status: +[1-9]|^Errors while running CTest|\b[1-9]\d* tests? failed out of [1-9]|\b\d+ passed, [1-9]\d* failed\b|\b[1-9]\d* (?:failed|errors?)\b.* in \d[\d.:]*s|\bnot remade because of errors|\breturned (?:with )?[1-9]\d{0,2}$|\bexit [1-9]\d{0,2}$`)
	// tally matches a row, in a table of results, that counts the parts of the work that failed.
	tally = textmatch.New(`(?i)^\W*(?:failed|errored|dropped|rejected|unanswered) (?:\w+ ){0,2}(?:requests?|trials?|fits?|quer(?:y|ies)|samples?|records?|documents?|files?|prompts?|downloads?|uploads?|transfers?|urls?|frames?|packets?|episodes?)\b *[:=|]? *\d+\W*$`)
	// workUnit matches a line that counts a part of the work.
	workUnit = textmatch.New(`(?i)^\s*\[?\d+\]?[:\s]\s*\S*\d|^\s*\d+(?:\.\d+)? ?%|\b(?:trial|request|chunk|shard|sample|task|item|file|fold|round|generation|game|episode|query|record|frame|block|part|page|cycle|image|document|case|point)s? #?\d+\b`)
	tries    = textmatch.New(`(?i)\b(?:attempt|try|tries|retry|retries|mismatch\w*|differ\w*|violat\w*|fail\w*)\b`)
	// recovery matches words which say that the program goes on in another way.
	recovery = textmatch.New(`(?i)\bretry\w*|\bretries\b|\b(?:received|answer\w*|connected|reachable|responding|available|alive|works?) again\b|\bis back\b|\btry(?:ing)? again|\bskip\w*|\bignor\w+|\binstead\b|\boptional\b|\busing defaults?\b|[,;:] (?:so |now )?(?:using|taking|trying|switching to|moving to|going back to|starting) (?:\w+ ){0,2}\S|\bassuming\b|\bcold cache\b|\bfall(?:ing|s)? ?back|\bcontinu\w+|\bgoing on\b|\bhedging\b|\brestart\w*|started again|\bresubmit\w*|\brecomput\w*|\breconnect\w*|\brecover\w*|\bresum\w+|\bbacking off|\bbackoff\b|\battempt \d|\boptional\b|\bnon-?fatal\b|\bhandled\b|\bcaught (?:and|exception|error)|exception caught\b|\brollback\b|\brolling back|\breduc\w+ (?:the )?batch|\bhalv\w+|\b(?:as|is|was|were|are) (?:expected|wanted|intended|planned)\b|\((?:as )?(?:expected|wanted|intended|planned)|(?:^|[-:\]] )restoring \w+|\b(?:grow|enlarg)ing the \w+|\bon purpose|\bintentional|\bdeliberate|\bsimulated\b|\bnegative test|\bshould fail|\bwaiting\b|\bwait(?:ed|s)? for\b|\bharmless\b|\banyway\b|\busing (?:the )?(?:default|cpu|cached|local)|\bwithout it\b|(?:[,;:]| --?) (?:the )?(?:\w+ ){1,3}(?:is |was |are |were )?(?:now )?(?:removed|dropped|rejected|excluded|left out|set aside|quarantined|blacklisted|marked as bad|excluded|masked|discarded|replaced|deferred|postponed|left out|clamped|capped|kept as (?:it|they))\b|\bper worker\b.*\bretrying|\bpruned\b|\bdefaults? (?:are |is |were |was )?(?:taken|used|kept|assumed)\b|\breplac(?:ing|ed) (?:it|the (?:worker|node|rank|process|actor|executor|engine))\b|\b(?:an?|one|the) (?:new|fresh|spare|replacement|substitute|standby) (?:engine|worker|actor|process|pool|executor|node|replica|attempt|session|connection|container|instance|child|client)\b|\bnew (?:engine|worker|actor|process|executor|attempt|session|instance|child) (?:with|pid|is|was|started|takes|\d)|\b(?:re-?spawn|re-?launch|re-?creat|re-?build|re-?fetch|re-?download|re-?read|re-?assign|re-?schedul|re-?dispatch|re-?open|re-?mount|re-?generat|re-?transmi|re-?send|re-?allocat|re-?initiali|re-?connect)\w*\b|\brunning without\b|\b(?:error|failure|status|code|exit \d+) (?:is |was )?ignored\b|\b[a-z]\w* #?\d\w* (?:is |was |were )?(?:dropped|rejected|discarded|excluded|skipped|omitted|masked|left out|set aside|removed|quarantined)\W*$|\bdropped\W*$|[,;] (?:the )?(?:\w+ ){1,3}(?:is|are|was|were|gets?) (?:now )?(?:used|taken)\b|\b(?:second|other|next|alternat\w+|backup) (?:mirror|server|host|source|copy|replica|endpoint|url|site)\b|\bidentity used\b|\btolerat\w+|\bworkaround\b|\bbest[ -]effort\b|\bfailing over\b|\bfail(?:ed)? ?over to\b`)
	givesUp  = textmatch.New(`(?i)\btimed? ?out\b.{0,80}\bwait|caught signal|\bretry count|\bretries exceeded|\bmax retries exceeded|\bfork: retry|chdir to|\bgiv(?:ing|es?|en) up|\bno more (?:retries|attempts)|\bretries (?:are )?(?:exhausted|exceeded)|\bmax\w* (?:retries|attempts) (?:reached|exceeded)|\bnot (?:retry|continu|recover)|\b(?:cannot|can't|could ?n[o']t|unable to|failed to|impossible to) (?:be )?re-?(?:start|run|sum|connect|try|build|launch|creat|read|open|load|stor|fetch)\w*|\bcannot (?:continue|recover)|\bunable to (?:continue|recover)|\babort|\bexiting|\bretries left: 0|\bfatal\b|\b0 attempts left|\bretry\(total=0\b|\bto recover\b|\brefus\w+ to\b|\byou (?:can|may|could|should|need|must)\b|\bto (?:continue|ignore|skip|retry|resume|restart)\b.{0,80}\b(?:please|set|use|pass|specify|add|run)\b`)
	// account matches lines that the program of the job has not printed: those in which a batch system accounts for a
	// job that has ended, and those of the kernel, of scripts and of services.
	account = textmatch.New(`(?i)^\[ *\d+\.\d{6}\] |^\[\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}\] |^\s*(?:Started|Finished|Start Time|Completed At|startedAt|finishedAt): +"?(?:\w{3}, \d|\d{4}-)|^distributed\.(?:nanny|worker|scheduler|core)(?:\.\w+)? - (?:info|warning) - |^wandb: (?:[^ew]|e[^r]|w[^a])|^(?:CPU (?:Efficiency|Utilized)|Memory (?:Efficiency|Utilized)|Job Wall-clock time|Cores per node|User/Group|Cluster|Nodes|Cores): |^=+ ?(?:resource )?usage ?=+|^\W*clean(?:ing)?[ -]?up\b|^\W*(?:removing|deleting) (?:temporary|scratch|local|tmp)\b|^sent [\d,.]+ bytes|^total size is [\d,.]+|^(?:copying|moving|syncing|staging|archiving) (?:\w+ ){0,2}(?:results?|outputs?|files|logs|back)\b|^\W*(?:the )?(?:job|script|run|batch|slurm \w+)\b.{0,40}\b(?:finished|ended|completed|done|stopped) (?:at|on)\b.{0,12}(?:\d|mon|tue|wed|thu|fri|sat|sun)|^\W*end (?:of )?(?:the )?(?:job|batch|run) ?(?:script)?\W*$|^real\s+\d+m|^(?:Begin|End) (?:PBS )?(?:prologue|epilogue)|^(?:Requested resources|Actual resources)|^\s+(?:nodes|cput|mem|vmem|walltime|ncpus)=|^Resource usage summary|^\s+(?:CPU time|Max Memory|Average Memory|Total Requested Memory|Delta Memory|Max Swap|Max Processes|Max Threads|Run time|Turnaround time) :|^\s+(?:Job Id|Project|Service Units|NCPUs Requested|CPU Time Used|Memory Requested|Walltime requested|JobFS requested)\b.*:|^\s+CPU Time Used:|^\s*(?:user|sys)\s+\d+m|^total \d+$|^[-dl][rwx-]{9}[.+]? |^\+ |^(?:slurm |pbs |lsf )?\S*epilog\S*\b|^(?:\([^()]*\) )?(?:INFO:? +)?(?:Shutting down|Waiting for application shutdown\.?|Application shutdown complete\.?|Finished server process \[\d+\])$`)
	// asWanted matches words which say that a failure is part of a test.
	asWanted = textmatch.New(`(?i)\bas (?:expected|wanted|intended|planned|it should)|\bas (?:it )?should\b|\[expected\]|\(expected\)|\bexpected (?:failure|error|to fail|exception)|\bxfail|\bon purpose|\bintentional|\bdeliberate`)
)

// completes reports whether a line says that the work is done.
func completes(t string) bool {
	if len(t) > 400 || message.Teardown.MatchString(t) {
		return false
	}
	if message.FortranStop.MatchString(t) {
		return true
	}
	if incomplete.MatchString(t) && !zeroFailed.MatchString(t) || onTheWay.MatchString(t) {
		return false
	}
	return completion.MatchString(t) || measure.MatchString(t) && !progress.MatchString(t) && !(validation.MatchString(t) && message.Advance.MatchString(t))
}

// onTheWay matches a file that a program writes during its work, with the number of a step in its name.
var onTheWay = textmatch.New(`(?i)\b(?:model|ckpt|chk|checkpoint|step|epoch|iter|state|weights|snapshot|restart)[_.-]?(?:step|epoch|iter)?[_.-]?\d+\.(?:pth?|ckpt|safetensors|npz|h5|bin|nc|npy)\W*$`)

// validation matches a result that a program that trains prints for each epoch.
var validation = textmatch.New(`(?i)\bval(?:idation)?[ _-]`)

// progress matches a line about a part of the work, with a bar or a rate.
var progress = textmatch.New(`\d ?/ ?\d+ |\dm?s/(?:step|it)\b|\bit/s\b|\d%`)

// counts reports whether a line says that all of a number of things are done.
func counts(t string) bool {
	m := counted.FindStringSubmatch(t)
	return m != nil && m[1] == m[2] && m[1] != "1" && m[1] != "0" && (!incomplete.MatchString(t) && !tries.MatchString(t) || zeroFailed.MatchString(t))
}

// unequal matches words which say that a value differs from the expected one.
var unequal = textmatch.New(`\binstead of (?:the )?(?:\d|expected)`)

// restartNoun matches words that look like a recovery but are none: a restart file or count, or a restart that is not
// possible.
var restartNoun = textmatch.New(`(?i)\b(?:cannot|can not|can.t|could not|unable to|failed to) (?:re-?start|resume|continue|go on|proceed)\b|\brestarts? (?:of|left|remaining|allowed)\b|\b(?:no|0) (?:more )?restarts\b|^restart: |\brestart[._]\d|\brestart[ _-]?(?:count|policy|files?|grids?|states?|mesh\w*|fields?|snapshots?|images?|points?|blocks?|parts?|dumps?|data|sets?|names?|path|dir\w*|input|header|record|step|index)\b|\bbackoff ?limit\w*|\bback-?off (?:pulling|restarting|limit)\b|\bspecified backoff limit`)

var trouble = textmatch.New(`(?i)\bwarn|\berror|\bfail|\bexception|\bcaught|\bcould not|\bcannot|\bunable|\btimed out|\blost|\bdied`)

// Recovers reports whether a line says that the program goes on in another way.
func Recovers(t string) bool {
	if strings.Contains(t, "estart") || strings.Contains(t, "resume") || strings.Contains(t, "ackoff") || strings.Contains(t, "ack-off") {
		t = restartNoun.ReplaceAllString(t, "")
	}
	if unequal.MatchString(t) {
		t = unequal.ReplaceAllString(t, "")
	}
	return len(t) < 400 && !pytrace.Harmless(t) && (asWanted.MatchString(t) || ignored.MatchString(t) || recovery.MatchString(t) && !givesUp.MatchString(t))
}

// Waits reports whether a line that looks like a recovery only says that a process waits. That shows no recovery,
// because ranks also wait for a rank that has ended.
func Waits(t string) bool { return waits.MatchString(t) && !Recovers(waits.ReplaceAllString(t, "")) }

var waits = textmatch.New(`(?i)\bwait(?:ing|ed|s)?\b`)

// ignored matches the words of a line about a failure which say that the failure does not matter.
var ignored = textmatch.New(`(?i)(?:[,;(]|--?) ?(?:error |failure |this (?:is|was) )?(?:ignored|ignoring|harmless|not fatal|non-?fatal)\W*$`)

// Ignored reports whether a line about a failure itself says that the failure does no harm.
func Ignored(t string) bool { return len(t) < longLine && ignored.MatchString(t) }

// Wanted reports whether a line says that a failure is part of a test.
func Wanted(t string) bool { return len(t) < longLine && asWanted.MatchString(t) }

// AbortsMPI reports whether a line of Open MPI says that it ends the program because of an error.
func AbortsMPI(t string) bool { return strings.Contains(t, "*** MPI_ERRORS_ARE_FATAL") }

// Troubled reports whether a line is about a problem. If such a line also says that the program goes on in
// another way, the line belongs to the sign of failure after it.
func Troubled(t string) bool { return trouble.MatchString(t) }

// figures matches a row of a table: words, and numbers after them.
var figures = textmatch.New(`^[^:=\[\]/()]*\pL[^:=\[\]/()]* +(?:\d+\.\d+|\d+(?: +\d+)+) *$`)

// Figures reports whether a line is a row of a table with a name and numbers. Such a line reports no failure, even if
// the name is that of an error.
func Figures(t string) bool { return figures.MatchString(t) }

// echo matches a line with which a script or program shows how it was started.
var echo = textmatch.New(`^(?:git|commit|HEAD|revision|config|args?|argv|cmd|deps)(?:: |=)|^Namespace\(|^(?:wandb|COMET|swanlab|neptune|NEPTUNE|clearml|ClearML):? (?:ERROR|WARNING)\b|\] Trial \d+ failed with (?:parameters|value)\b|"(?:sample|samples|example|pattern|template|query|prompt|snippet|quote|excerpt)": ?["\[]|(?i)\b(?:\d+|two|three|several|some|a few|a|last) (?:days?|weeks?|months?|years?) (?:ago|before|earlier)\b|\byesterday\b|\bbefore the (?:last|previous) (?:boot|reboot|reset)|^\++ (?:echo|export|printf) `)

// fallback matches what a library prints when it goes on in another way. For instance, JAX looks for devices that it
// may use, XLA first tries to get much memory of a GPU and then takes less, and the client of Lustre sends a request
// again.
var fallback = textmatch.New(`\bthrown while requesting (?:HEAD|GET) https:|\bL(?:ustre|Net): \d+:\d+:\(\w+\.c:\d+|xla_bridge\.py:\d+\] Unable to initialize backend '(?:tpu|rocm|axon|neuron|interpreter)'|cuda_driver\.cc:\d+\] failed to allocate \d|conv_algorithm_picker\.cc:\d+\]|^device: CUDA_ERROR_OUT_OF_MEMORY: out of memory$|bfc_allocator\.cc:\d+\] (?:Garbage collection|Allocator .* ran out of memory trying .*not a failure)|The caller indicates that this is not a failure`)

// Echo reports whether a line reports no failure of the job, although words in it may name one. Such a line shows how a
// script or program was started, quotes a sample or a prompt in JSON, or tells of the past, as in "3 days ago". Or it
// is an error of a tool that records experiments, such as wandb or Comet, or of a library that then goes on in another
// way.
func Echo(t string) bool { return echo.MatchString(t) || fallback.MatchString(t) }

// CountForm returns the beginning of a line, with each of its numbers as "#". The beginning does not include the time.
func CountForm(t string) string {
	t = t[timeEnd(t):]
	form, number := make([]byte, 0, 16), false
	for i := 0; i < len(t) && len(form) < cap(form); i++ {
		digit := t[i] >= '0' && t[i] <= '9'
		switch {
		case !digit:
			form = append(form, t[i])
		case !number:
			form = append(form, '#')
		}
		number = digit
	}
	return string(form)
}

// timeEnd returns where the text of a line begins after the time, such as 20:25:02, at its beginning. It returns 0 if
// the line has no time there.
func timeEnd(t string) int {
	const form = "00:00:00"
	for i := 0; i < min(len(t)-len(form), 14); i++ {
		match := true
		for j := range len(form) {
			digit := t[i+j] >= '0' && t[i+j] <= '9'
			match = match && digit == (form[j] == '0') && (digit || t[i+j] == ':')
		}
		if match {
			end := i + len(form)
			for end < len(t) && t[end] != ' ' {
				end++
			}
			for end < len(t) && t[end] == ' ' {
				end++
			}
			return end
		}
	}
	return 0
}
