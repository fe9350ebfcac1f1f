package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var incorrectInputs = []rule.Rule{{
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
	Category: job.IncorrectInputs, Signature: "missing-file", Confidence: 0.6, Traits: rule.Weak,
	Hint:    "check the path ${artefact|named} on the rank's host; relative paths start at the job's working directory",
	Needles: []string{"no such file or directory", "file not found", "error opening file", "cannot open file", "could not open file", "unable to open file"},
	Find: textmatch.New(`(?:[Nn]o such file or directory|[Ff]ile not found)(?::|\s+-) *['"]?(?P<artefact>[^\s'"]+)|` +
		`(?P<artefact>[^\s'":(]*[/.][^\s'":(]*)['"]?: [Nn]o such file|` +
		`(?:open(?:ing)? file:?|locate file:|name =) *['"]?(?P<artefact>[^\s'",)]+)`),
	Unless: textmatch.New(`(?i)shared object file|\(ignored\)|slurmd(?:\[|:)|warning:`),
}, {
	Category: job.IncorrectInputs, Signature: "missing-file", Confidence: 0.9, Traits: rule.Continued,
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
	Classes: []string{rule.TooFewRanks},
}, {
	Category: job.IncorrectInputs, Signature: "argparse", Confidence: 0.95,
	Meaning: "the program does not know or accept one of its command-line arguments",
	Hint:    "correct the argument in the job's command; the program's --help lists what it takes",
	Needles: []string{"error: unrecognized arguments", "error: the following arguments are required", "error: argument ", "error: ambiguous option", "error: one of the arguments", "error: no such option", "error: missing option", "error: missing argument", "error: invalid value for", "error: got unexpected extra argument",
		"error: unexpected argument '", "error: the following required arguments", "error: invalid value '", "error: a value is required for '", "error: unrecognized subcommand '", "error: the argument '", "error: parser key ", "error: unrecognized options",
		"unknown command line flag", "flags parsing error", "could not consume arg: ", "received no value for the required argument", "not used by the hfargumentparser", "is ambiguous; possibilities:", "unrecognized option '", "invalid option -- '", "flag provided but not defined", "missing required flag", "unknown shorthand flag", "unknown flag: --", "is required but missing", "required flag(s) \""},
	Find:   textmatch.New(`(?:arguments?|required|option|flag|defined|Option|for)(?: --|:)? *['"]?(?P<artefact>--?[\w-]+)`),
	Unless: textmatch.New(`PETSC ERROR`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-config", Confidence: 0.9,
	Meaning: "the program's configuration lacks a key or has one that it does not know (Hydra, OmegaConf)",
	Hint:    "correct the key in the configuration or the override on the command line",
	Classes: []string{"ConfigAttributeError", "ConfigKeyError", "ConfigCompositionException", "MissingConfigException", "MissingMandatoryValue", "OverrideParseException", "ConfigTypeError", "InterpolationKeyError", "InterpolationResolutionError", "InterpolationToMissingValueError",
		"UnsupportedInterpolationType", "ReadonlyConfigError", "GrammarParseError", "KeyValidationError", "UnsupportedValueType", "NoSectionError", "NoOptionError", "MissingSectionHeaderError", "DuplicateSectionError", "DuplicateOptionError", "ParsingError", "InterpolationSyntaxError", "InterpolationMissingOptionError", "InterpolationDepthError", "MissingValueError", "WrongTypeError", "UnexpectedDataError", "UnionMatchError", "DeepSpeedConfigError", "MisconfigurationException", "ImproperlyConfigured"},
}, {
	Category: job.IncorrectInputs, Signature: "bad-config", Confidence: 0.9,
	Hint:    "correct the setting that the message names, in the configuration file or on the command line",
	Classes: []string{"AssertionError", "ValueError", "KeyError", "RuntimeError", "Exception"},
	Needles: []string{"in your config", "in config", "check batch related parameters", "deepspeed config", "in the config", "config file", "specify --", "provide --", " pass --"},
	Match:   textmatch.New(`(?i)check batch related parameters|deepspeed config|(?:missing|not found|not set|must be set|required|invalid|unknown|unsupported|unrecogni[sz]ed)(?: \S+){0,4} in (?:the |your )?config|config file .*(?:not|missing)|^AssertionError: (?:please )?(?:specify|set|provide|pass|use) --\w`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-config", Confidence: 0.85,
	Hint:    "correct the class that the configuration names (_target_)",
	Classes: []string{"InstantiationException"},
	Needles: []string{"error locating target '"},
	Find:    textmatch.New(`locating target '(?P<artefact>[^']+)'`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-config", Confidence: 0.8, Traits: rule.Generic,
	Hint:    "correct the setting that the message names",
	Classes: []string{"ConfigError", "ConfigurationError", "InvalidConfigError", "InvalidConfigurationError", "ConfigException", "ConfigFileError"},
}, {
	Category: job.IncorrectInputs, Signature: "bad-config", Confidence: 0.75, Traits: rule.Generic,
	Hint:    "correct the input or setting that the message names",
	Classes: []string{"*"},
	Match:   textmatch.New(`^(?:\w+\.)*\w+(?:Config|Configuration|Settings?|CommandLine|Option|Input|InputFile|InputData|Namelist|Manifest)(?:Error|Exception)(?::|$|\n)`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-config", Confidence: 0.9,
	Hint:    "correct the key in the configuration or the override on the command line",
	Needles: []string{"could not override '", "primary config", "lexernoviablealtexception", "': could not find '"},
	Match:   textmatch.New(`^In '[^']+': Could not find '(?P<artefact>[^']+)'|Could not override '(?P<artefact>[^']+)'|Primary config .*not found|LexerNoViableAltException`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-json", Confidence: 0.9,
	Meaning: "a JSON file or line cannot be parsed",
	Hint:    "correct the JSON that the program reads at the place given; an empty or cut file reads as \"Expecting value\"",
	Classes: []string{"JSONDecodeError"},
}, {
	Category: job.IncorrectInputs, Signature: "bad-format", Confidence: 0.9,
	Meaning: "a structured input (YAML, TOML, CSV, Parquet, HDF5 ...) cannot be parsed",
	Hint:    "correct the input at the place given, or check that it is the file you mean and whole",
	Classes: []string{"ScannerError", "ParserError", "ConstructorError", "ComposerError", "YAMLError", "TOMLDecodeError", "TomlDecodeError", "EmptyDataError", "ArrowInvalid", "DatasetGenerationError", "DataFilesNotFoundError", "XMLSyntaxError", "ParseError", "DataError", "ReaderError", "DuplicateKeyError",
		"DatasetGenerationCastError", "NonMatchingSplitsSizesError", "ExpectedMoreSplitsError", "UnexpectedSplitsError", "NonMatchingChecksumError", "UnexpectedDownloadedFileError", "ExpectedMoreDownloadedFilesError", "ExpectedMoreDownloadedFiles", "NoDataError", "MatReadError", "InvalidDicomError", "ImageFileError", "HeaderDataError",
		"MetadataError", "MetadataValidationError", "CorruptedError", "ExpatError", "ConversionException", "CastError", "InvalidInputException", "VersionMismatchError", "FileTypeError", "FileFormatError", "UnknownFileTypeError", "FormatError", "DataFormatError", "UnsupportedFormatError", "InvalidFormatError", "InvalidFileError", "InputError", "InvalidInputError", "BadInputError", "BadFile", "ParserException", "TypedBadConversion", "KeyNotFound", "toml::syntax_error", "toml::parse_error", "toml::v3::parse_error", "toml::ex::parse_error", "YAML::BadFile", "YAML::ParserException",
		"YAML::InvalidNode", "YAML::BadConversion", "H5::FileIException", "H5::DataSetIException", "HighFive::FileException", "HighFive::DataSetException"},
}, {
	Category: job.IncorrectInputs, Signature: "bad-format", Confidence: 0.9,
	Hint:    "correct the input at the place given, or check that it is the file you mean and whole",
	Classes: []string{"*"},
	Needles: []string{"could not convert string", "number of columns changed", "file signature not found", "expected a format", "not a valid csv", "truncated file: eof", "corrupted record at", "end of file", "bad real number", "bad integer",
		"bad logical", "bad complex", "bad repeat count", "bad value during", "cannot match namelist object", "end of record", "equal sign must follow", "end-of-file during read", "input conversion error", "i/o syntax error", "syntax error in namelist", "too many values for namelist", "invalid reference to variable in namelist", "requires too much data",
		"tprotocolexception", "thrift", "corrupt snappy", "unpack requires a buffer", "[json.exception.", "yaml-cpp: error", "unknown file format", "not recognized as being in a supported file format", "modelproto", "model_proto->", "untagged enum modelwrapper", "could not parse `", "wrong number of columns", "number of columns at line", "some errors were detected",
		"unicode-", "invaliddigit", "parseinterror", "parsefloaterror", "missing field `", "unknown field `", "toml parse error", "expected value at line", "key must be a string at", "eof while parsing a", "looking for beginning of", "cannot unmarshal ", "yaml: line ", "yaml: unmarshal errors", "invalid syntax", "genfromtxt", "unexpected end of json input",
		"malformed", "hdf error", "not a valid netcdf", "database disk image is malformed", "end of file during input", "no columns to parse from file", "wrong magic number", "cannot load file containing pickled data", "number of classes has to be greater than one", "needs samples of at least 2 classes"},
	Match: textmatch.New(`could not convert string '(?P<artefact>[^']*)' to|number of columns changed|file signature not found|truncated file: eof|[Cc]orrupted record|End of file|Bad (?:real|integer|logical|complex|repeat count|value during)|not a valid csv|[Ee]xpected a format|Cannot match namelist object|End of record|Equal sign must follow|end-of-file during read|input conversion error|I/O syntax error|syntax error in NAMELIST|too many values for NAMELIST|invalid reference to variable in NAMELIST|requires too much data|` +
		`TProtocolException|deserialize thrift|Corrupt snappy|unpack requires a buffer|\[json\.exception\.(?:parse_error|type_error|out_of_range)|yaml-cpp: error|Unknown file format|supported file format|ModelProto|model_proto->|ModelWrapper|could not parse .\S*. as|[Ww]rong number of columns|number of columns at line|Some errors were detected|` +
		`InvalidDigit|Parse(?:Int|Float)Error|missing field .|unknown field .|TOML parse error|expected value at line|key must be a string at|EOF while parsing|looking for beginning of|cannot unmarshal|yaml: |strconv\.\w+: parsing|unexpected end of JSON input|NetCDF: HDF error|disk image is malformed|malformed (?:node|header|line|row|record|input|data|file|JSON|XML|YAML)|No columns to parse|wrong magic number|containing pickled data when allow_pickle=False|number of classes has to be greater|at least 2 classes`),
	Unless: textmatch.New(`(?i)checkpoint|restart file|EOFError: EOF when`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-encoding", Confidence: 0.9,
	Meaning: "a text is not in the encoding in which it is read",
	Hint:    "convert the file, or open it with its real encoding; compressed and binary files show this too",
	Classes: []string{"UnicodeDecodeError", "UnicodeError"},
}, {
	Category: job.IncorrectInputs, Signature: "bad-encoding", Confidence: 0.85,
	Hint:    "convert the file, or open it with its real encoding; compressed and binary files show this too",
	Needles: []string{"stream did not contain valid utf-8", "invalid multibyte string", "invalid utf-8 sequence", "malformed utf-8 character (fatal)"},
	Unless:  textmatch.New(`(?i)warning|skip|replac|ignor`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-image", Confidence: 0.9,
	Meaning: "an image or media file is damaged or in an unknown format",
	Hint:    "remove the file ${artefact|named}, or fetch it again",
	Classes: []string{"*"},
	Needles: []string{"cannot identify image file", "image file is truncated", "broken data stream when reading image", "invalid data found when processing input", "unrecognized data stream contents", "exceeds limit of", "format not recognised", "nobackenderror", "corrupt jpeg", "decompressionbomb", "unsupported image type", "not a sgi image"},
	Match:   textmatch.New(`(?i)identify image|file is truncated|broken data stream|processing input|unrecognized data stream|DecompressionBomb|format not recognised|NoBackendError|corrupt jpeg|unsupported image`),
	Find:    textmatch.New(`image file '(?P<artefact>[^']+)'`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-image", Confidence: 0.9,
	Hint:    "remove the file, or fetch it again",
	Classes: []string{"SyntaxError"},
	Needles: []string{"not a png file", "broken png file", "not a tiff file", "not a jpeg file", "not a gif file", "not an ", "cannot read this "},
	Match:   textmatch.New(`SyntaxError: (?:not an? \w+ file|broken PNG file|cannot read this \w+)`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-image", Confidence: 0.85,
	Hint:    "remove the file ${artefact|named}, or fetch it again",
	Classes: []string{"LibsndfileError", "SoundFileError", "SoundFileRuntimeError", "DECORDError", "InvalidDataError", "UnidentifiedImageError", "DecompressionBombError", "NoBackendError", "CouldntDecodeError"},
	Find:    textmatch.New(`opening '(?P<artefact>[^']+)'`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-image", Confidence: 0.85,
	Hint:    "remove the file ${artefact|named}, or fetch it again",
	Classes: []string{"*"},
	Needles: []string{" not a", "magic", "unrecognized", "unrecognised", "unknown file format"},
	Match:   textmatch.New(`\b[Nn]ot an? (?:valid )?[A-Z][A-Z0-9.]{1,7} (?:image|file|archive|stream|recording)\b|\b(?:bad|wrong|unexpected|invalid|unknown) magic (?:b['"]|0x|bytes?|string)|\(magic (?:b['"]|0x)|(?i:un(?:recogni[sz]ed|known) (?:file|image|audio|video) format)`),
	Find:    textmatch.New(`(?P<artefact>[\w./-]+\.\w{2,5})\b`),
	Unless:  textmatch.New(`(?i)checkpoint|ckpt|restart|\.pth?\b`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-archive", Confidence: 0.85,
	Meaning: "a compressed or pickled input is damaged or cut short",
	Hint:    "fetch or write the file again, and check its size against the source",
	Classes: []string{"BadZipFile", "BadGzipFile", "ReadError", "LZMAError", "UnpicklingError", "zlib.error", "EOFError", "ZstdError", "UncompressError"},
	Match:   textmatch.New(`(?i)zip|zstd|snappy|gzip|tar|lzma|compressed|pickle|ran out of input|end-of-stream|invalid load key|decompress|corrupt`),
	Unless:  textmatch.New(`Unsupported (?:global|class)|not an allowed global`),
}, {
	Category: job.IncorrectInputs, Signature: "unknown-dataset", Confidence: 0.9,
	Meaning: "the named model, dataset or revision does not exist where it is looked for",
	Hint:    "check the name ${artefact|given}, and that a local path by that name is meant to be there",
	Classes: []string{"RepositoryNotFoundError", "DatasetNotFoundError", "EntryNotFoundError", "RemoteEntryNotFoundError", "RevisionNotFoundError", "HFValidationError", "NoSuchBucket", "NoSuchKey", "ResourceNotFoundError", "ProfileNotFound", "MissingSchema", "InvalidSchema", "InvalidURL", "NoSuchBucketError", "NoSuchKeyError"},
}, {
	Category: job.IncorrectInputs, Signature: "unknown-dataset", Confidence: 0.9,
	Hint:    "check the name ${artefact|given}, and that a local path by that name is meant to be there",
	Classes: []string{"*"},
	Needles: []string{"is not a local folder and is not a valid model identifier", "404 client error", "http error 404", "couldn't find a dataset script", "couldn't find any data file", "does not appear to have a file named", "error no file named ", "can't load tokenizer for", "can't load the configuration of", "can't load the model for", "can't load feature extractor for", "can't load image processor for", "can't load processor for", "incorrect path_or_model_id",
		"can't find 'adapter_config.json'", "should have a `model_type` key", "builderconfig '", "unknown split \"", "unknown model (", "invalid pretrained tag", "no such object", "is not the path to a directory containing a file named", "invalid repository id", "config_name '", "unknown url type"},
	Unless: textmatch.New(`(?i)we couldn't connect|offline mode`),
	Find:   textmatch.New(`^\w+: (?P<artefact>[\w./-]+) (?:is not a local folder|does not appear)|url: (?P<artefact>\S+)`),
}, {
	Category: job.IncorrectInputs, Signature: "empty-dataset", Confidence: 0.9,
	Meaning: "the dataset is empty",
	Hint:    "check the data path and the filters on it: no sample was found",
	Classes: []string{"*"},
	Needles: []string{"num_samples should be a positive integer", "found 0 files in subfolders", "found no valid file", "the dataset is empty", "dataset is empty", "with n_samples=0", "no images found in", "no samples found", "no data found in", "found no samples", "found no images", "with 0 sample(s)", "empty dataset", "no training data", "train split is empty", "couldn't find any class folder"},
}, {
	Category: job.IncorrectInputs, Signature: "missing-file", Confidence: 0.85,
	Hint:    "check the path ${artefact|named} on the rank's host; relative paths start at the job's working directory",
	Classes: []string{rule.Message},
	Match: textmatch.New(`(?i)no such file|file not found|error opening \S+ for reading|(?:file|script|directory) \S+ (?:does not exist|(?:could not be|cannot be|was not|is not|not) (?:found|opened|read))|` +
		`(?:cannot|can't|could not|couldn't|unable to|failed(?: to)?|error) (?:open(?:ing)?|find|read(?:ing)?|locate|access) (?:\w+ ){0,3}(?:file|script|directory|['"]?[^\s'"]*[./][^\s'"]*\w)`),
	Find: textmatch.New(`(?i)(?:file|script|open|directory):? ['"]?(?P<artefact>[^\s'":,;()]*[/.][^\s'":,;()]*[^\s'":,;().])|['"](?P<artefact>[^\s'"]+\.[^\s'"]+)['"]|(?:input script) (?P<artefact>[^\s:]+)`),
}, {
	Category: job.IncorrectInputs, Signature: "program-input", Confidence: 0.85,
	Meaning: "the program's own error message is about its input: a file, a keyword, an option, a parameter",
	Hint:    "correct the input or option that the message names; the program's documentation lists what it takes",
	Classes: []string{rule.Message},
	Match: textmatch.New(`(?i)\bjq: error|foam fatal io error|\b(?:input|namelist|keywords?|options?|arguments?|args|parameters?|command[- ]line|config\w*|syntax|card|usage|token|line number|not found|not (?:on|in|part of) (?:the )?(?:\w+ )?(?:file|data ?set|archive|table)|(?:absent|missing) (?:from|in)|(?:file|data ?set|table) (?:\S+ )?(?:lacks|has no)|nf(?:90)?_e(?:notvar|baddim|notatt|notnc)|pseudopotentials?|basis set|topology|unknown|unrecogni[sz]ed|unsupported|unexpected|` +
		`undefined|misspelled|must be (?:specified|given|set|positive|one of|a multiple of)|must not be (?:smaller|larger|greater|less) than|not (?:specified|recogni[sz]ed|supported|allowed|a valid)|missing (?:\w+ )?(?:file|value|section|block|field)|expected|illegal|invalid|incorrect|bad (?:line|value|format|number)|non-?existent|not set\b|are not set|does not match|do not match|not defined|not divisible|out of range|too (?:few|many) (?:arguments|parameters|columns|fields|values|items|ranks|processors|processes)|no (?:such )?(?:input|topology|atoms|k-points|moleculetype)|potcar|poscar|incar|kpoints|atomtype|moleculetype|restraint|multiplicity|parameter file|` +
		`(?:is|are) required|requires? (?:a|an|the|at least)|no domain decomposition|inconsistency in user input|(?:setting|value) of \w+ (?:was|is) (?:in|un)\w+|ran out of valid boundary|boundary conditions in file|wrfbdy\w*|inconsistent|minimum cell size|cut-?off length|(?:is|are) not compatible with|not (?:decomposed|partitioned)|cannot find file|number of (?:ranks|processors|processes) (?:is|must)|unable to find \w+ parameters|didn't find \w+ parameter|must (?:be|have)|needs? to be|cannot be (?:negative|zero|empty)|(?:cannot|can not|can't|must not) (?:use|combine|mix|apply|have|specify)|conflicts? with|mutually exclusive)\b`),
	Unless: textmatch.New(`(?i)\bnot converged\b|\bdid not converge\b|\bconvergence (?:fail|not)|\b(?:invalid|illegal) (?:\w+ )?(?:pointer|memory|address|access|instruction|free|read|write|state)\b|\bcfl\b|input/output|unexpected(?:ly)? (?:end of|signal|error|exception|closed|internal|nan)|internal error|unknown (?:error|reason)|zero pivot|out of range atoms|zero-?divi|object is in wrong state|arguments? out of range|nonconforming object|arguments are incompatible|wrong type of object|null argument|index out of range|subscript|object '|file descriptor|bytes expected|socket|connection|heap|stack`),
}, {
	Category: job.IncorrectInputs, Signature: "program-input", Confidence: 0.85,
	Hint: "correct the input or option that the message names; the program's documentation lists what it takes",
	Needles: []string{"error in the input file", "error in the specified basis set", "unrecognized or duplicated keyword", "error reading item '", "incompatible with number of species", "found an unknown keyword", "unknown keyword", "is an invalid option name",
		"errors while reading one or more namelists", "namelists from namelist.input", "misspelled variable in namelist", "analysis input file processor exited with an error", "end of file in zsymb", "a syntax error was detected in the input line", "symbol not found in z-matrix", "is impossible.", "there was 1 error in input file", "errors in input file(s)",
		"no such moleculetype", "does not match topology", "unknown left-hand '", "unable to find bond parameters", "unable to find angle parameters", "unable to find dihedral parameters", "didn't find vdw parameter", "were set in the configuration file but are not valid", "unknown patchfield type", "unknown patchfieldtype", "pgfio-f-", "fio-f-", "set in options database", "input error", "number of processor directories", "unrecoverable library error", "option used that is not recognised"},
	Match: textmatch.New(`(?i)there is an error in the (?:input file|specified basis set)|UNRECOGNIZED OR DUPLICATED KEYWORD|^\W*Error reading item '|incompatible with number of species|found an unknown keyword|^\W*\*+ERROR: *unknown keyword\b|is an invalid option name|` +
		`ERRORS while reading one or more namelists|misspelled variable in namelist|Input File Processor exited with an error|End of file in ZSymb|syntax error was detected in the input line|Symbol not found in Z-matrix|combination of multiplicity .* is impossible|There (?:was|were) \d+ errors? in input file|` +
		`No such moleculetype|does not match topology|Unknown left-hand '|UNABLE TO FIND \w+ PARAMETERS|DIDN'T FIND \w+ PARAMETER|in the configuration file but are NOT VALID|Unknown patchField ?type|^(?:PGFIO|FIO)-F-\d+/(?:OPEN|list-directed read|formatted read|unformatted read|namelist read)|^ *INPUT ERROR *$|number of processor directories|^ *A (?:READ|numeric input)`),
	Unless: textmatch.New(`(?i)warning|permission|write/`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-config", Confidence: 0.9,
	Hint:    "correct the setting that the message names; it is checked against a schema",
	Classes: []string{"ValidationError", "SchemaError", "MultipleInvalid", "UsageError", "BadParameter", "SettingsError", "NoSuchOption", "MissingParameter", "BadOptionUsage", "BadArgumentUsage", "GetoptError", "ArgumentTypeError", "IllegalFlagValueError", "UnrecognizedFlagError", "ParameterNotFound", "InvalidArgument", "OptionError"},
}, {
	Category: job.IncorrectInputs, Signature: "missing-setting", Confidence: 0.85,
	Meaning: "an environment variable or setting that the program needs is not set",
	Hint:    "set it, for instance with -e NAME=VALUE or env: in the job file",
	Needles: []string{"environment variable"},
	Match:   textmatch.New(`(?i)environment variable ['"]?(?P<artefact>\w+)['"]? (?:expected, but |is |was |must be |has )?(?:not (?:been )?(?:set|defined|found)|missing|undefined|required|unset)|(?i)(?:missing|undefined|unset|required) environment variable:? ['"]?(?P<artefact>\w+)`),
	Unless:  textmatch.New(`(?i)default|warning|OMP_NUM_THREADS|[,;(] *using`),
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
	Needles: []string{"mpi_err_no_such_file", "needed by '", "file not found: filepath=", "fatal error: cannot find file", "could not access config file", "unable to access config file", "unable to access jarfile", "no such file, file name", "the specified old file", "xerrors: file does not exist", "cannot find input file", "file does not exist: "},
	Match:   textmatch.New(`MPI_ERR_NO_SUCH_FILE|[Ff]ile not found: filepath=(?P<artefact>\S+)|nable to access (?:config file|jarfile) (?P<artefact>\S+)|(?i:cannot find (?:input )?file "?(?P<artefact>[^\s"]+))|specified OLD file <(?P<artefact>[^>]+)> cannot be opened|FileNotFoundException.*File does not exist: (?P<artefact>\S+)|No rule to make target '(?P<artefact>[^']+)', needed by`),
}, {
	Category: job.IncorrectInputs, Signature: "missing-file", Confidence: 0.85,
	Hint:    "correct the path, or put the file there on every host",
	Classes: []string{"std::invalid_argument", "std::runtime_error", "std::ios_base::failure", "std::filesystem::filesystem_error", "std::logic_error", "go panic", "rust panic", "RuntimeError", "OSError", "ValueError", "Exception"},
	Match:   textmatch.New(`(?i)(?:cannot|can't|could not|couldn't|unable to|failed to) (?:open|find|read|locate|access|load) (?:the )?(?:input |data |mesh |config\w* )?(?:file:? |dataset:? |deck:? )?['"]?(?P<artefact>[^\s'"]*[/.][^\s'"]*)['"]?(?: for reading)?|\bopen (?P<artefact>[^\s:]+): no such file|os error 2\)|code: 2, kind: NotFound`),
	Unless:  textmatch.New(`(?i)for writing|\.so\b|checkpoint|ckpt|\.pt\b|CUDA|permission|socket|device|zip archive`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-archive", Confidence: 0.85,
	Hint:    "fetch or make the records again",
	Classes: []string{"DataLossError"},
	Needles: []string{"corrupted record", "truncated record", "iteratorgetnext"},
}, {
	Category: job.IncorrectInputs, Signature: "bad-archive", Confidence: 0.85,
	Hint:    "fetch or make the records again",
	Needles: []string{"data_loss: corrupted record", "data_loss: truncated record"},
}, {
	Category: job.IncorrectInputs, Signature: "empty-dataset", Confidence: 0.8,
	Hint:    "look at what selects the data: a path, a date, a filter, the number of ranks",
	Classes: []string{rule.Message},
	Match:   textmatch.New(`(?i)\b(?:returned|returns|found|read|loaded|matched|yielded|got) (?:0|no|zero) (?:\w+ )?(?:rows|records|samples|examples|entries|files|lines|documents|images|items|sequences)\b|\b(?:query|filter|dataset|manifest|shard|split|store|table|glob)\b.{0,60}\b(?:is empty|matches nothing|returned nothing)\b`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-archive", Confidence: 0.6, Traits: rule.Weak,
	Hint:    "fetch or make the archive again, and compare its size and checksum with the original",
	Needles: []string{"unexpected end of file", "unexpected eof in archive", "not in gzip format", "error is not recoverable", "truncated gzip", "crc error", "is not a tar archive", "premature end", "corrupt input"},
	Match:   textmatch.New(`(?i)(?:gzip|zcat|tar|unzip|xz|bzip2|zstd|gunzip)\b.*(?:unexpected (?:end of file|EOF)|not in gzip format|not recoverable|truncated|crc error|not a tar archive|premature end|corrupt)`),
}, {
	Category: job.IncorrectInputs, Signature: "program-input", Confidence: 0.9,
	Hint:    "correct the input or option that the message names; the program's documentation lists what it takes",
	Classes: []string{"Error"},
	Needles: []string{"unable to find requested ", " has no numeric value", " has no integer value", "unknown option ", "unknown logical value"},
}, {
	Category: job.IncorrectInputs, Signature: "missing-file", Confidence: 0.85,
	Hint:    "correct the path, or put the file there on every host",
	Classes: []string{"GroupNotFoundError", "ArrayNotFoundError", "PathNotFoundError", "NodeNotFoundError", "FSPathExistNotDir", "NoSuchFile", "NoSuchFileError", "ConfigFileNotFoundError", "MissingFileError", "ImageFileNotFoundError", "EXRFileNotFoundError"},
}, {
	Category: job.IncorrectInputs, Signature: "missing-file", Confidence: 0.85,
	Hint:    "check the path ${artefact|named} on the rank's host; relative paths start at the job's working directory",
	Classes: []string{"NotFoundError", "RasterioIOError", "LibsndfileError", "CPLE_OpenFailedError", "DataSourceError", "OperationalError", "IOException", "Error", "lmdb.Error", "NotFound", "Exception", "RuntimeError", "ValueError", "OSError", "LoadError", "ClickException", "FileError"},
	Match:   textmatch.New(`Could not find directory (?P<artefact>/\S+)|SavedModel file does not exist at: (?P<artefact>[^\s{]+)|(?P<artefact>[^\s'":;]*/[^\s'":;]*)['"]?[:;] [Nn]o such file or directory|[Nn]o such file or directory: ['"]?(?P<artefact>[^\s'"]+)|unable to open database file|(?i:\bfile) ['"]?(?P<artefact>[^\s'"]*[/.][^\s'"]*)['"]? (?:does not exist|doesn't exist|is missing|(?:was |is |could )?not (?:be )?found)|Error opening '?(?P<artefact>[^\s':]+)'?: System error|No files found that match the pattern "(?P<artefact>[^"]+)"`),
	Unless:  textmatch.New(`(?i)\.so\b|checkpoint|ckpt|shared object`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-format", Confidence: 0.9,
	Hint:    "correct the input at the place given, or check that it is the file you mean and whole",
	Classes: []string{"Error"},
	Match:   textmatch.New(`^(?:_csv|csv|binascii)\.Error`),
}, {
	Category: job.IncorrectInputs, Signature: "missing-file", Confidence: 0.85,
	Hint:    "check the path ${artefact|named}; of several hosts, each needs the file",
	Needles: []string{"exception in thread \"", "cannot open the connection"},
	Match:   textmatch.New(`^Error in (?:file|gzfile|url|readRDS)\(.*cannot open the connection|(?:FileNotFound|NoSuchFile)Exception: *(?P<artefact>[^\s(]+)?`),
}, {
	Category: job.IncorrectInputs, Signature: "missing-file", Confidence: 0.7, Traits: rule.Weak,
	Hint:    "check the path ${artefact|named} on the rank's host; relative paths start at the job's working directory",
	Needles: []string{"unable to read file '", "could not find file", "cannot find or open ", "file does not exist"},
	Match:   textmatch.New(`Unable to read file '(?P<artefact>[^']+)'|could not find file (?P<artefact>\S+)|cannot find or open (?P<artefact>[^\s,]+)|(?i:file) ['"]?(?P<artefact>[^\s'"]*[/.][^\s'"]*)['"]? does not exist`),
	Unless:  textmatch.New(`(?i)warning|creat|will|default|skip|ignor`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-format", Confidence: 0.75, Traits: rule.Weak,
	Hint:    "correct the input at the place given, or check that it is the file you mean and whole",
	Needles: []string{"json: cannot unmarshal", "yaml: unmarshal errors", "yaml: line ", "looking for beginning of", "strconv.parse", "strconv.atoi", "no lines available in input", "unexpected end of json input", "jq: error", "jq: parse error", "end-of-central-directory signature not found", "invalid data found when processing input", "parse error at line"},
	Unless:  textmatch.New(`(?i)warn|retry|skip|ignor`),
}, {
	Category: job.IncorrectInputs, Signature: "bad-format", Confidence: 0.85,
	Hint:    "correct the input at the place given, or check that it is the file you mean and whole",
	Needles: []string{"fatal fortran runtime error", "lib-4001", "lib-4081", "lib-4190", "lib-4213"},
	Match:   textmatch.New(`fatal Fortran runtime error.*(?:End of file|Bad|[Ii]nvalid character)|lib-4(?:001|081|190|213) : UNRECOVERABLE`),
}, {
	Category: job.IncorrectInputs, Signature: "missing-setting", Confidence: 0.85,
	Hint:    "set it, for instance with -e NAME=VALUE or env: in the job file",
	Classes: []string{"NoRegionError", "DefaultCredentialsErrors", "EnvError", "UndefinedValueError"},
}, {
	Category: job.IncorrectInputs, Signature: "argparse", Confidence: 0.9,
	Hint:    "correct the argument in the job's command; the program's --help lists what it takes",
	Needles: []string{"no such option: ", "missing option ", "missing argument ", "invalid value for '", "got unexpected extra argument", "no such command '", "unrecognized options: ", "required options", "requires an argument"},
	Match:   textmatch.New(`^[│|] (?:No such option: (?P<artefact>--?[\w-]+)|Missing option|Missing argument|Invalid value for|Got unexpected extra argument|No such command|Unrecognized options: (?P<artefact>--?[\w-]+)|(?:The following )?[Rr]equired options)|: option '?(?P<artefact>--?[\w-]+)'? requires an argument|: option requires an argument -- `),
}}
