package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var incorrectInputs = []Rule{{
	Category: job.IncorrectInputs, Signature: "missing-file", Confidence: 0.9,
	Meaning: "a file or directory that the job reads is not there",
	Hint:    "check the path ${artefact|named} on the rank's host; relative paths start at the job's working directory; list it under inputs: to have it checked beforehand",
	Classes: []string{"FileNotFoundError", "NotADirectoryError"},
	Find:    textmatch.New(`directory: ['"](?P<artefact>[^'"]+)['"]|: (?P<artefact>/\S+) (?:not found|does not exist)`),
}, {
	Category: job.IncorrectInputs, Signature: "missing-file", Confidence: 0.9,
	Hint:    "check the path ${artefact|named} on the rank's host; relative paths start at the job's working directory; list it under inputs: to have it checked beforehand",
	Classes: []string{"FileNotFoundError"},
	Needles: []string{" not found", "does not exist"},
	Match:   textmatch.New(`(?P<artefact>[^\s'":]*/[^\s'":]+)['"]? (?:was |is )?(?:not found|does not exist)`),
}, {
	Category: job.IncorrectInputs, Signature: "script-missing", Confidence: 0.95,
	Meaning: "the interpreter does not find the script that it was given",
	Hint:    "check the script's path; relative paths start at the job's working directory",
	Needles: []string{"can't open file '", "cannot open script", "can't open perl script", "no such file or directory in expression starting at"},
	Match:   textmatch.New(`(?:open file '|open script '?|perl script ")(?P<artefact>[^'"]+)`),
}, {
	Category: job.IncorrectInputs, Signature: "missing-file", Confidence: 0.6, Traits: Weak,
	Hint:    "check the path ${artefact|named} on the rank's host; relative paths start at the job's working directory",
	Needles: []string{"no such file or directory", "file not found", "error opening file", "cannot open file", "could not open file", "unable to open file"},
	Find: textmatch.New(`(?:[Nn]o such file or directory|[Ff]ile not found)(?::|\s+-) *['"]?(?P<artefact>[^\s'"]+)|` +
		`(?P<artefact>[^\s'":(]*[/.][^\s'":(]*)['"]?: [Nn]o such file|` +
		`(?:open(?:ing)? file:?|locate file:|name =) *['"]?(?P<artefact>[^\s'",)]+)`),
	Unless: textmatch.New(`(?i)shared object file|\(ignored\)|slurmd|warning:`),
}, {
	Category: job.IncorrectInputs, Signature: "missing-file", Confidence: 0.9, Traits: Continued,
	Hint:    "check the path ${artefact|named} on the rank's host; relative paths start at the job's working directory",
	Needles: []string{"from a  non-existing file:", "from a non-existing file:"},
	Find:    textmatch.New(`non-existing file: (?P<artefact>\S+)`),
}, {
	Category: job.IncorrectInputs, Signature: "missing-file", Confidence: 0.9,
	Hint:    "check the path ${artefact|named} on the rank's host; relative paths start at the job's working directory",
	Classes: []string{"fortran runtime error", "forrtl severe"},
	Needles: []string{"does not exist", "file not found", "no such file or directory"},
	Find:    textmatch.New(`(?:File|file) '?(?P<artefact>[^\s']+)'? does not exist|file not found, .*file (?P<artefact>\S+)|[Cc]annot open file '(?P<artefact>[^']+)'`),
}, {
	Category: job.IncorrectInputs, Signature: "not-a-file", Confidence: 0.9,
	Meaning: "the path of a file is a directory",
	Hint:    "give the file inside ${artefact|it}, not the directory",
	Classes: []string{"IsADirectoryError"},
	Find:    textmatch.New(`directory: '(?P<artefact>[^']+)'`),
}, {
	Category: job.IncorrectInputs, Signature: "too-few-ranks", Confidence: 0.95,
	Meaning: "the program says that it needs more ranks than the gang has",
	Hint:    "ask for them with -n ${ranks}",
	Text:    "the program needs ${need} ranks: ${said}",
	Classes: []string{TooFewRanks},
}, {
	Category: job.IncorrectInputs, Signature: "argparse", Confidence: 0.95,
	Meaning: "the program does not know or accept one of its command-line arguments",
	Hint:    "correct the argument in the job's command; the program's --help lists what it takes",
	Needles: []string{"error: unrecognized arguments", "error: the following arguments are required", "error: argument ", "error: ambiguous option",
		"error: one of the arguments", "error: no such option", "error: missing option", "error: missing argument", "error: invalid value for", "error: got unexpected extra argument",
		"error: unexpected argument '", "unknown command line flag", "unrecognized option '", "invalid option -- '", "flag provided but not defined"},
	Find: textmatch.New(`(?:arguments?|required|option|flag|defined|Option|for)(?: --|:)? *['"]?(?P<artefact>--?[\w-]+)`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-config", Confidence: 0.9,
	Meaning: "the program's configuration lacks a key or has one that it does not know (Hydra, OmegaConf)",
	Hint:    "correct the key in the configuration or the override on the command line",
	Classes: []string{"ConfigAttributeError", "ConfigKeyError", "ConfigCompositionException", "MissingConfigException", "MissingMandatoryValue", "OverrideParseException", "ConfigTypeError"},
}, {
	Category: job.IncorrectInputs, Signature: "bad-config", Confidence: 0.9,
	Hint:    "correct the key in the configuration or the override on the command line",
	Needles: []string{"could not override '", "primary config", "lexernoviablealtexception"},
	Match:   textmatch.New(`Could not override '(?P<artefact>[^']+)'|Primary config .*not found|LexerNoViableAltException`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-json", Confidence: 0.9,
	Meaning: "a JSON file or line cannot be parsed",
	Hint:    "correct the JSON that the program reads at the place given; an empty or cut file reads as \"Expecting value\"",
	Classes: []string{"JSONDecodeError"},
}, {
	Category: job.IncorrectInputs, Signature: "bad-format", Confidence: 0.9,
	Meaning: "a structured input (YAML, TOML, CSV, Parquet, HDF5 ...) cannot be parsed",
	Hint:    "correct the input at the place given, or check that it is the file you mean and whole",
	Classes: []string{"ScannerError", "ParserError", "ConstructorError", "ComposerError", "YAMLError", "TOMLDecodeError", "TomlDecodeError", "EmptyDataError", "ArrowInvalid", "DatasetGenerationError", "DataFilesNotFoundError", "XMLSyntaxError", "ParseError", "DataError"},
}, {
	Category: job.IncorrectInputs, Signature: "bad-format", Confidence: 0.9,
	Hint:    "correct the input at the place given, or check that it is the file you mean and whole",
	Classes: []string{"*"},
	Needles: []string{"could not convert string", "number of columns changed", "file signature not found", "expected a format", "not a valid csv", "truncated file: eof", "corrupted record at", "end of file", "bad real number", "bad integer"},
	Match:   textmatch.New(`could not convert string(?: '(?P<artefact>[^']*)')? to|number of columns changed|file signature not found|truncated file: eof|[Cc]orrupted record|End of file|Bad (?:real|integer)|not a valid csv|[Ee]xpected a format`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-encoding", Confidence: 0.9,
	Meaning: "a text is not in the encoding in which it is read",
	Hint:    "convert the file, or open it with its real encoding; compressed and binary files show this too",
	Classes: []string{"UnicodeDecodeError", "UnicodeError"},
}, {
	Category: job.IncorrectInputs, Signature: "bad-image", Confidence: 0.9,
	Meaning: "an image or media file is damaged or in an unknown format",
	Hint:    "remove the file ${artefact|named}, or fetch it again",
	Classes: []string{"*"},
	Needles: []string{"cannot identify image file", "image file is truncated", "broken data stream when reading image", "invalid data found when processing input"},
	Find:    textmatch.New(`image file '(?P<artefact>[^']+)'`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-archive", Confidence: 0.85,
	Meaning: "a compressed or pickled input is damaged or cut short",
	Hint:    "fetch or write the file again, and check its size against the source",
	Classes: []string{"BadZipFile", "BadGzipFile", "ReadError", "LZMAError", "UnpicklingError", "zlib.error", "EOFError"},
	Match:   textmatch.New(`(?i)zip|gzip|tar|lzma|compressed|pickle|ran out of input|end-of-stream|invalid load key|decompress|corrupt`),
}, {
	Category: job.IncorrectInputs, Signature: "unknown-dataset", Confidence: 0.9,
	Meaning: "the named model, dataset or revision does not exist where it is looked for",
	Hint:    "check the name ${artefact|given}, and that a local path by that name is meant to be there",
	Classes: []string{"RepositoryNotFoundError", "DatasetNotFoundError", "EntryNotFoundError", "RemoteEntryNotFoundError", "RevisionNotFoundError", "HFValidationError"},
}, {
	Category: job.IncorrectInputs, Signature: "unknown-dataset", Confidence: 0.9,
	Hint:    "check the name ${artefact|given}, and that a local path by that name is meant to be there",
	Classes: []string{"*"},
	Needles: []string{"is not a local folder and is not a valid model identifier", "404 client error", "http error 404", "couldn't find a dataset script", "couldn't find any data file", "does not appear to have a file named"},
	Find:    textmatch.New(`^\w+: (?P<artefact>[\w./-]+) (?:is not a local folder|does not appear)|url: (?P<artefact>\S+)`),
}, {
	Category: job.IncorrectInputs, Signature: "empty-dataset", Confidence: 0.9,
	Meaning: "the dataset is empty",
	Hint:    "check the data path and the filters on it: no sample was found",
	Classes: []string{"*"},
	Needles: []string{"num_samples should be a positive integer", "found 0 files in subfolders", "found no valid file", "the dataset is empty", "dataset is empty", "with n_samples=0"},
}, {
	Category: job.IncorrectInputs, Signature: "missing-file", Confidence: 0.85,
	Hint:    "check the path ${artefact|named} on the rank's host; relative paths start at the job's working directory",
	Classes: []string{Message},
	Match: textmatch.New(`(?i)no such file|file not found|(?:file|script|directory) \S+ (?:does not exist|(?:could not be|cannot be|was not|is not|not) (?:found|opened|read))|` +
		`(?:cannot|can't|could not|couldn't|unable to|failed(?: to)?|error) (?:open(?:ing)?|find|read(?:ing)?|locate|access) (?:\w+ ){0,3}(?:file|script|directory|['"]?[^\s'"]*[./][^\s'"]*\w)`),
	Find: textmatch.New(`(?i)(?:file|script|open|directory):? ['"]?(?P<artefact>[^\s'":,;()]*[/.][^\s'":,;()]*[^\s'":,;().])|['"](?P<artefact>[^\s'"]+\.[^\s'"]+)['"]|(?:input script) (?P<artefact>[^\s:]+)`),
}, {
	Category: job.IncorrectInputs, Signature: "program-input", Confidence: 0.85,
	Meaning: "the program's own error message is about its input: a file, a keyword, an option, a parameter",
	Hint:    "correct the input or option that the message names; the program's documentation lists what it takes",
	Classes: []string{Message},
	Match: textmatch.New(`(?i)\b(?:input|namelist|keywords?|options?|arguments?|args|parameters?|command[- ]line|config\w*|syntax|card|usage|token|line number|not found|pseudopotentials?|basis set|topology|unknown|unrecogni[sz]ed|unsupported|unexpected|` +
		`undefined|misspelled|must be (?:specified|given|set|positive|one of|a multiple of)|must not be (?:smaller|larger|greater|less) than|not (?:specified|recogni[sz]ed|supported|allowed|a valid)|missing (?:\w+ )?(?:file|value|section|block|field)|expected|illegal|invalid|incorrect|bad (?:line|value|format|number))\b`),
	Unless: textmatch.New(`(?i)\b(?:invalid|illegal) (?:\w+ )?(?:pointer|memory|address|access|instruction|free|read|write|state)\b|input/output|unexpected(?:ly)? (?:end of|signal|error|exception|closed|internal|nan)|internal error|unknown (?:error|reason)`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-config", Confidence: 0.9,
	Hint:    "correct the setting that the message names; it is checked against a schema",
	Classes: []string{"ValidationError", "SchemaError", "MultipleInvalid", "UsageError", "BadParameter", "SettingsError"},
}, {
	Category: job.IncorrectInputs, Signature: "missing-setting", Confidence: 0.85,
	Meaning: "an environment variable or setting that the program needs is not set",
	Hint:    "set it, for instance with -e NAME=VALUE or env: in the job file",
	Needles: []string{"environment variable"},
	Match:   textmatch.New(`(?i)environment variable ['"]?(?P<artefact>\w+)['"]? (?:is |was |must be |has )?(?:not (?:been )?(?:set|defined|found)|missing|undefined|required|unset|set\b)|(?i)(?:missing|undefined|unset|required) environment variable:? ['"]?(?P<artefact>\w+)`),
	Unless:  textmatch.New(`(?i)default|warning|OMP_NUM_THREADS|using`),
}, {
	Category: job.IncorrectInputs, Signature: "unknown-dataset", Confidence: 0.9,
	Hint:    "correct the name of the object, bucket or key",
	Classes: []string{"*"},
	Needles: []string{"nosuchkey", "nosuchbucket", "(404)", "the specified key does not exist", "the specified bucket does not exist"},
}, {
	Category: job.IncorrectInputs, Signature: "bad-format", Confidence: 0.9,
	Hint:    "look at the file that it read last: another format, another version, or cut short",
	Classes: []string{"ArrowInvalid", "ParquetException", "ArrowTypeError", "DecodeError", "DataError", "TOMLDecodeError", "ParserError", "InvalidFileException"},
}, {
	Category: job.IncorrectInputs, Signature: "bad-format", Confidence: 0.85,
	Hint:    "look at the file that it read last: another format, another version, or cut short",
	Needles: []string{"file is not a database", "not a valid hdf5", "parquet magic bytes not found", "mpi_err_no_such_file"},
	Unless:  textmatch.New(`MPI_ERR_NO_SUCH_FILE`),
}, {
	Category: job.IncorrectInputs, Signature: "missing-file", Confidence: 0.9,
	Hint:    "correct the path, or put the file there on every host",
	Needles: []string{"mpi_err_no_such_file", "needed by '"},
	Match:   textmatch.New(`MPI_ERR_NO_SUCH_FILE|No rule to make target '(?P<artefact>[^']+)', needed by`),
}, {
	Category: job.IncorrectInputs, Signature: "missing-file", Confidence: 0.85,
	Hint:    "correct the path, or put the file there on every host",
	Classes: []string{"std::invalid_argument", "std::runtime_error", "std::ios_base::failure", "std::filesystem::filesystem_error", "std::logic_error", "go panic", "rust panic", "RuntimeError", "OSError", "ValueError", "Exception"},
	Match:   textmatch.New(`(?i)(?:cannot|can't|could not|couldn't|unable to|failed to) (?:open|find|read|locate|access|load) (?:the )?(?:input |data |mesh |config\w* )?(?:file |dataset |deck )?['"]?(?P<artefact>[^\s'"]*[/.][^\s'"]*)['"]?(?: for reading)?|\bopen (?P<artefact>[^\s:]+): no such file|os error 2\)|code: 2, kind: NotFound`),
	Unless:  textmatch.New(`(?i)for writing|\.so\b|checkpoint|ckpt|\.pt\b|CUDA|permission|socket|device|zip archive`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-archive", Confidence: 0.6, Traits: Weak,
	Hint:    "fetch or make the archive again, and compare its size and checksum with the original",
	Needles: []string{"unexpected end of file", "unexpected eof in archive", "not in gzip format", "error is not recoverable", "truncated gzip", "crc error", "is not a tar archive", "premature end", "corrupt input"},
	Match:   textmatch.New(`(?i)(?:gzip|zcat|tar|unzip|xz|bzip2|zstd|gunzip)\b.*(?:unexpected (?:end of file|EOF)|not in gzip format|not recoverable|truncated|crc error|not a tar archive|premature end|corrupt)`),
}, {
	Category: job.IncorrectInputs, Signature: "program-input", Confidence: 0.9,
	Hint:    "correct the input or option that the message names; the program's documentation lists what it takes",
	Classes: []string{"Error"},
	Needles: []string{"unable to find requested ", " has no numeric value", " has no integer value", "unknown option ", "unknown logical value"},
}}
