package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const outputHint = "create the directory of ${artefact|the output} beforehand on every host that writes, or correct the output path"

const existsHint = "choose another output path, or allow the program to go on in it (exist_ok=True, --overwrite)"

var (
	// outputExists matches a message which names an output and then says that the output exists already.
	outputExists = textmatch.New(`(?i)\b(?:output|results?|run|experiment|log(?:ging)?|save|target|export)[ _-]?(?:files?|dir(?:ector(?:y|ies))?|folders?|path)\b.*\b(?:(?:already )?exists?|(?:is )?not empty)\b`)
	// goesOn matches words of a program that goes on although its output exists.
	goesOn = textmatch.New(`(?i)overwrit(?:ing|ten|es)|warning|\b(?:append|skip|resum|reus|continu|delet|remov|renam|ignor)\w*(?:ing|ed|es|s)\b|\bwill (?:append|skip|resume|reuse|continue|delete|remove|rename|ignore|be)\b|backup|backing|\b(?:does|do|did|must|doesn't|don't) (?:not )?exist`)
	// existing matches the path in such a message.
	existing = textmatch.New(`(?i)\b(?:files?|directory|folder):? ['"]?(?P<artefact>[^\s'"]*/[^\s'"]*)`)
)

// cannotWriteText matches messages of programs that cannot open an output file.
const cannotWriteText = `(?i:(?:cannot|can't|could not|couldn't|unable to|failed to|error) (?:open(?:ing)?|creat\w+|writ\w+)(?: to)? (?:the )?(?:(?:output|result|log|trajectory|restart|dump|new) )?(?:file|directory)?:? ?['"<]?(?P<artefact>[^\s'">]*[/.][^\s'">]*)['">]? (?:for (?:writing|output|appending)|in write mode)|` +
	`(?:cannot|can't|could not|couldn't|unable to|failed to|error) (?:open(?:ing)?|creat\w+|writ\w+)(?: to)? (?:the )?(?:output|result|results|trajectory|dump) (?:file|directory|folder|path)\b)`

var (
	cannotWrite = textmatch.New(cannotWriteText)
	// otherRefusal matches reasons that belong to other categories.
	otherRefusal = textmatch.New(`(?i)permission|no space|quota|read-only|input/output error|warning|socket|thread|cuda`)
)

var outputError = []rule.Rule{{
	Category: job.OutputError, Signature: "missing-output-directory", Confidence: 0.9,
	Meaning: "the directory in which the job wants to write does not exist",
	Hint:    outputHint,
	Classes: []string{"FileNotFoundError", "OSError", "NotADirectoryError"},
	Match:   textmatch.New(`directory: ['"](?P<artefact>[^'"]+)['"]|non-existent directory: '(?P<artefact>[^']+)'`),
	Context: textmatch.New(`(?:open|fopen|File|ZipFile|TarFile)\(.*,\s*(?:mode\s*=\s*)?["'][rbt]*[wxa]|\b(?:save|savez|savetxt|to_csv|to_json|to_parquet|to_pickle|savefig|write_text|write_bytes|mkdir|makedirs|save_file|save_pretrained|to_hdf|to_excel|to_feather|to_netcdf|to_zarr|write_table|imwrite|imsave|write_csv|write_parquet|sink_parquet|export|FileHandler|SummaryWriter)\(|\bopen\w*\(self\.baseFilename|\bopen\w*\([^()]*(?:out|output|result|log)\w*(?:\)|, ?mode)`),
}, {
	Category: job.OutputError, Signature: "missing-output-directory", Confidence: 0.95,
	Hint:    outputHint,
	Classes: []string{"*"},
	Needles: []string{"parent directory ", "cannot save file into a non-existent directory", "unable to create file", "unable to synchronously create file"},
	Match:   textmatch.New(`Parent directory (?P<artefact>\S+) does not exist|non-existent directory: '(?P<artefact>[^']+)'|[Uu]nable to (?:synchronously )?create file \(unable to open file: name = '(?P<artefact>[^']+)', errno = 2`),
}, {
	Category: job.OutputError, Signature: "missing-output-directory", Confidence: 0.9,
	Hint: outputHint,
	// These are messages of R. The calls in Context show that the file is an output.
	Needles: []string{"cannot open the connection", "cannot open file", "cannot open compressed file"},
	Context: textmatch.New(`^Calls: .*\b(?:saveRDS|save|write\.\w+|write_\w+|fwrite|ggsave|sink|pdf|png|svg|jpeg|tiff|cat|writeLines|dput|dump|save\.image)\b`),
	Find:    textmatch.New(`cannot open (?:compressed )?file '(?P<artefact>[^']+)'`),
	Unless:  otherRefusal,
}, {
	Category: job.OutputError, Signature: "missing-output-directory", Confidence: 0.85,
	Hint:    outputHint,
	Needles: []string{"no such file or directory", "not a directory", "does not exist", "notfound", "not found"},
	Match: textmatch.New(`(?i)\b(?:cannot|can't|could not|couldn't|unable to|failed to|failure to|error) (?:writ|sav|stor|export|upload|flush|dump|creat)\w* (?:the |an? |its |our |to )*(?:\w+[ -]){0,3}?(?:outputs?|results?|predictions?|partitions?|report|tables?|summary|metrics|figures?|plots?|tiles?|parts?|csv|parquet|archive)\b.{0,200}` +
		`(?:no such file or directory|not a directory|does not exist|not ?found)`),
	Unless: otherRefusal,
}, {
	Category: job.OutputError, Signature: "output-is-directory", Confidence: 0.9,
	Meaning: "the path of an output file is a directory",
	Hint:    "give a file inside ${artefact|it}, not the directory",
	Classes: []string{"IsADirectoryError"},
	Find:    textmatch.New(`directory: ['"](?P<artefact>[^'"]+)['"]`),
	Context: textmatch.New(`(?:open|fopen|File|ZipFile|TarFile)\(.*,\s*(?:mode\s*=\s*)?["'][rbt]*[wxa]|\b(?:save|savez|savetxt|to_csv|to_json|to_parquet|to_pickle|savefig|write_text|write_bytes|save_file|save_pretrained|dump|export|imwrite|imsave|copy\w*|write_csv|write_parquet)\(|\bargs\.out`),
}, {
	Category: job.OutputError, Signature: "output-exists", Confidence: 0.9,
	Meaning: "a file or directory that the job wants to create is there already",
	Hint:    existsHint,
	Classes: []string{"FileExistsError"},
	Find:    textmatch.New(`exists: '(?P<artefact>[^']+)'`),
}, {
	Category: job.OutputError, Signature: "output-exists", Confidence: 0.7, Traits: rule.Weak | rule.Continued,
	Hint:    existsHint,
	Needles: []string{"already exist", "exists already", "exist already"},
	Match:   outputExists,
	Unless:  goesOn,
	Find:    existing,
}, {
	Category: job.OutputError, Signature: "output-exists", Confidence: 0.85,
	Hint:    existsHint,
	Classes: []string{"*", rule.Message},
	Needles: []string{"exist", "not empty"},
	Match:   outputExists,
	Unless:  goesOn,
	Find:    existing,
}, {
	Category: job.OutputError, Signature: "read-only", Confidence: 0.95,
	Meaning: "the file or the file system that the job writes to is read-only",
	Hint:    "write elsewhere; a disk that turned read-only by itself has failed: see the host's kernel log",
	Needles: []string{"read-only file system"},
	Find:    textmatch.New(`file system: ['"](?P<artefact>[^'"]+)['"]|['"]?(?P<artefact>/[^\s'":]+)['"]?: [Rr]ead-only`),
}, refused(job.OutputError, "read-only", "write elsewhere (GANGRUN_HOME, TMPDIR); a disk that turned read-only by itself has failed: see the host's kernel log", "read-only file system"), {
	Category: job.OutputError, Signature: "file-size-limit", Confidence: 0.9,
	Meaning: "a file grew beyond the limit on its size",
	Hint:    "raise the limit (ulimit -f) or write smaller files; for NetCDF, choose the 64-bit or the HDF5 format",
	Needles: []string{"file too large", "file size limit exceeded", "variable sizes violate format"},
	Match:   textmatch.New(`File too large|: file too large$|File size limit exceeded|variable sizes violate format constraints`),
}, refused(job.OutputError, "file-size-limit", "raise the limit (ulimit -f) or print less", "file too large"), {
	Category: job.OutputError, Signature: "file-size-limit", Confidence: 0.95,
	Hint: "raise the limit (ulimit -f) or write smaller files",
	Text: "ended by ${signal}: a file grew beyond the limit on its size", Ends: rule.Ends{Signals: []int{25}},
}, {
	Category: job.OutputError, Signature: "output-exists", Confidence: 0.9,
	Hint:    existsHint,
	Classes: []string{"AlreadyExistsError", "ContainsArrayError", "ContainsGroupError", "ContainsArrayAndGroupError", "ResourceExistsError", "StepAlreadyExistsError", "FileAlreadyExistsException", "fortran runtime error", "forrtl severe", "ValueError"},
	Match:   textmatch.New(`^(?:\w+\.)*(?:AlreadyExistsError|Contains\w+Error|ResourceExistsError|StepAlreadyExistsError|FileAlreadyExistsException)|File '(?P<artefact>[^']+)' already exists|cannot overwrite existing file(?:.*file (?P<artefact>\S+))?|Destination (?P<artefact>/?\S+) already exists`),
}, {
	Category: job.OutputError, Signature: "output-exists", Confidence: 0.85,
	Hint:    existsHint,
	Needles: []string{"filealreadyexistsexception", "path_already_exists"},
	Match:   textmatch.New(`FileAlreadyExistsException: (?:Output directory )?(?P<artefact>\S+)|PATH_ALREADY_EXISTS`),
}, {
	Category: job.OutputError, Signature: "missing-output-directory", Confidence: 0.85,
	Hint:    outputHint,
	Classes: []string{rule.Message},
	Match:   cannotWrite,
	Unless:  otherRefusal,
}, {
	Category: job.OutputError, Signature: "missing-output-directory", Confidence: 0.85,
	Hint:    outputHint,
	Classes: []string{"std::runtime_error", "std::ios_base::failure", "std::ios_base::failure[abi:cxx11]", "std::filesystem::filesystem_error", "std::filesystem::__cxx11::filesystem_error", "std::invalid_argument", "std::logic_error", "go panic", "rust panic", "RuntimeError", "OSError", "IOError", "Exception", "ValueError"},
	Match:   cannotWrite,
	Unless:  otherRefusal,
}, {
	Category: job.OutputError, Signature: "missing-output-directory", Confidence: 0.85,
	Hint:    outputHint,
	Needles: []string{": no such file or directory"},
	Match:   textmatch.New(`^\S+: line \d+: (?P<artefact>\S*(?:out|results?|outputs?|logs?|figures|plots|reports?|runs)/\S*\.\w+): No such file or directory`),
}, {
	Category: job.OutputError, Signature: "missing-output-directory", Confidence: 0.8,
	Hint:    outputHint,
	Classes: []string{"fortran runtime error", "forrtl severe"},
	Match:   textmatch.New(`(?i)Cannot open file '(?P<artefact>[^']*(?:\bout|outputs?|results?|archive|dump|logs?|rst|history)[^']*/[^']*)': No such file`),
}, {
	Category: job.OutputError, Signature: "missing-output-directory", Confidence: 0.7, Traits: rule.Weak,
	Hint:    outputHint,
	Needles: []string{"cannot create regular file", "cannot create directory", "for writing", "cannot create ", "cannot write ", "could not write ", "could not create ", "failed to create ", "unable to create "},
	Match:   textmatch.New(`^(?:cp|mv|mkdir|touch|install|ln|rsync|tee|gzip|sh|dash|bash)\b.*(?:cannot create|cannot touch) .*['"‘](?P<artefact>[^'"’]+)['"’]: (?:No such file or directory|Not a directory)|: cannot create (?P<artefact>\S+): Directory nonexistent|` + cannotWriteText),
	Unless:  otherRefusal,
}}
