package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const checkpointHint = "delete the damaged file, or move it away, and resume from the checkpoint before it: gangrun run --resume --checkpoint-dir DIR begins at the newest one that is whole"

// loads matches frames of code that reads a checkpoint.
var loads = textmatch.New(`(?i)checkpoint|ckpt|resume|restore|load_state|torch\.load|serialization|safe_open|load_file|load_model|from_pretrained|\bweights\b|\.pth?\b`)

var (
	// restores matches frames of code that reads the state from which a run goes on.
	restores = textmatch.New(`(?i)\b(?:checkpoint|ckpt|resume|restore|restart|load_state|load_checkpoint|trainer_state)\w*\b`)
	// damagedState matches messages which say that a checkpoint or restart file is damaged.
	damagedState = textmatch.New(`(?i)\b(?:checkpoint|ckpt|restart|snapshot|wavecar|chgcar|state) ?(?:file|data|dump|header|archive)?\b.{0,80}\b(?:corrupt\w*|truncated|damaged|incomplete|checksum|crc|bad magic|wrong magic|premature|cut short|unreadable|inconsistent|invalid (?:header|magic)|not (?:been )?(?:finali[sz]ed|committed)|missing commit\w*|partially written)|\b(?:corrupt\w*|truncated|damaged|incomplete|checksum mismatch|bad magic)\b.{0,60}\b(?:checkpoint|ckpt|restart(?: file)?|snapshot)\b|while reading WAVECAR|checksum (?:is )?(?:wrong|failed|mismatch|error)\w*\b.{0,40}\.(?:cpt|ckpt|chk|rst|restart|pt)\b`)
	// notDamaged matches words of messages about other failures.
	notDamaged = textmatch.New(`(?i)warning|shape|size mismatch|permission|no space|quota`)
)

var checkpointError = []rule.Rule{{
	Category: job.CheckpointError, Signature: "torch-damaged", Confidence: 0.95,
	Meaning: "a PyTorch checkpoint is cut short or damaged",
	Hint:    checkpointHint,
	Find:    textmatch.New(`['"](?P<artefact>/[^'"]+)['"]`),
	Needles: []string{"pytorchstreamreader failed", "invalid magic number; corrupt file", "unexpected eof, expected", "is this a torch.save", "file in archive is not in a subdirectory", "storage has wrong byte size", "storage has wrong size: expected"},
}, {
	Category: job.CheckpointError, Signature: "pickle-damaged", Confidence: 0.9,
	Meaning: "a pickled checkpoint is empty or cut short",
	Hint:    checkpointHint,
	Find:    textmatch.New(`['"](?P<artefact>/[^'"]+)['"]`),
	Classes: []string{"EOFError", "UnpicklingError", "BadZipFile", "BadGzipFile", "zlib.error"},
	Context: loads,
	Unless:  textmatch.New(`Unsupported (?:global|class)|not an allowed global|EOF when reading a line`),
}, {
	Category: job.CheckpointError, Signature: "torch-damaged", Confidence: 0.85,
	Hint:    checkpointHint,
	Classes: []string{"OSError"},
	Needles: []string{"[errno 22] invalid argument"},
	Context: textmatch.New(`PyTorchFileReader|_open_zipfile_reader|torch\.load\(|load_checkpoint|safe_open\(`),
}, {
	Category: job.CheckpointError, Signature: "safetensors-damaged", Confidence: 0.95,
	Meaning: "a safetensors file is cut short or damaged",
	Hint:    checkpointHint,
	Classes: []string{"SafetensorError", "SafetensorsError"},
	Needles: []string{"header", "metadataincompletebuffer", "incomplete metadata", "invalidoffset", "buffer"},
	Unless:  textmatch.New(`No such file`),
}, {
	Category: job.CheckpointError, Signature: "safetensors-damaged", Confidence: 0.9,
	Hint:    checkpointHint,
	Needles: []string{"error while deserializing header"},
}, {
	Category: job.CheckpointError, Signature: "hdf5-damaged", Confidence: 0.9,
	Meaning: "an HDF5 checkpoint is cut short or was not closed",
	Hint:    checkpointHint,
	Classes: []string{"OSError", "IOError"},
	Needles: []string{"truncated file: eof", "file signature not found", "unable to open file", "unable to synchronously open file", "unable to lock file"},
	Match:   textmatch.New(`truncated file|file signature not found|unable to lock file`),
	Context: loads,
}, {
	Category: job.CheckpointError, Signature: "tensorflow-damaged", Confidence: 0.9,
	Meaning: "a TensorFlow or JAX checkpoint lacks a part or is damaged",
	Hint:    checkpointHint,
	Classes: []string{"DataLossError", "CheckpointException"},
}, {
	Category: job.CheckpointError, Signature: "tensorflow-damaged", Confidence: 0.9,
	Hint:    checkpointHint,
	Unless:  textmatch.New(`(?i)(?:corrupted|truncated) record|IteratorGetNext`),
	Needles: []string{"unable to open table file", "checksum does not match", "unsuccessful tensorslicereader", "data_loss: "},
}, {
	Category: job.CheckpointError, Signature: "dcp-incomplete", Confidence: 0.9,
	Meaning: "a sharded checkpoint lacks its metadata or a shard",
	Hint:    checkpointHint,
	Classes: []string{"*"},
	Needles: []string{".zarray", "opening \"zarr\" driver", "opening \"zarr3\" driver", "manifest.ocdbt", "/.metadata'", "missing key in checkpoint state_dict", ".distcp'", "not a valid checkpoint", "zero_pp_rank", "could not find checkpoint shard", "unable to find latest file at", "_optim_states.pt'", "_model_states.pt'", "no checkpoint files found", "no checkpoint found in", "could not find the metadata file", "is not a distributed checkpoint", "unable to load weights from checkpoint file", "invalid metadata file", "checkpoint is incomplete"},
	Match:   textmatch.New(`(?i:error opening "zarr3?" driver|\.zarray\b.{0,40}(?:does not exist|not found|missing)|manifest\.ocdbt\b.{0,40}(?:does not exist|not found|missing))|'(?P<artefact>[^']+/\.metadata)'|'(?P<artefact>[^']+\.distcp)'|Missing key in checkpoint|not a valid checkpoint|zero_pp_rank|checkpoint shard|Unable to find latest file at (?P<artefact>\S+)|Expected \d+ of '|No checkpoint (?:files )?found|could not find the metadata file (?P<artefact>\S+)|not a distributed checkpoint|Unable to load weights from checkpoint file|[Ii]nvalid metadata file|checkpoint is incomplete`),
}, {
	Category: job.CheckpointError, Signature: "dcp-incomplete", Confidence: 0.7, Traits: rule.Generic | rule.Peer,
	Hint:    checkpointHint,
	Needles: []string{"states.pt'] does not exist", "states.pt' does not exist", "states.pt does not exist"},
	Find:    textmatch.New(`(?P<artefact>[^\s'"\[]+states\.pt)`),
}, {
	Category: job.CheckpointError, Signature: "checkpoint-exception", Confidence: 0.85,
	Meaning: "the program's own code refused a checkpoint",
	Hint:    checkpointHint,
	Find:    textmatch.New(`(?P<artefact>/[^\s'",:()]+)`),
	Classes: []string{"CheckpointError", "CheckpointLoadError", "CheckpointCorruptError", "CorruptCheckpointError", "InvalidCheckpointError", "CheckpointReadError", "CheckpointingException", "CheckpointLoadException", "CheckpointCorruptedError", "CorruptedCheckpointError", "RestoreError", "CheckpointRestoreError", "CheckpointNotFoundError", "CheckpointIntegrityError", "RestartError", "RestartFileError"},
}, {
	Category: job.CheckpointError, Signature: "checkpoint-exception", Confidence: 0.85,
	Hint:    checkpointHint,
	Find:    textmatch.New(`(?P<artefact>/[^\s'",:()]+)`),
	Classes: []string{"*", rule.Message},
	Match:   damagedState,
	Unless:  notDamaged,
}, {
	Category: job.CheckpointError, Signature: "checkpoint-exception", Confidence: 0.85,
	Hint:    checkpointHint,
	Find:    textmatch.New(`(?P<artefact>[^\s'",:()]+\.\w+)`),
	Classes: []string{"JSONDecodeError", "BadZipFile", "EOFError", "UnpicklingError", "struct.error", "ScannerError", "UnicodeDecodeError"},
	Context: restores,
	Unless:  textmatch.New(`Unsupported (?:global|class)|not an allowed global|EOF when reading a line`),
}, {
	Category: job.CheckpointError, Signature: "checkpoint-exception", Confidence: 0.7, Traits: rule.Weak,
	Hint:    checkpointHint,
	Find:    textmatch.New(`(?P<artefact>[^\s'",:()]+\.\w+)`),
	Needles: []string{"truncated", "corrupt", "checksum", "bad magic", "wrong magic", "premature end", "is incomplete", "is damaged"},
	Match:   damagedState,
	Unless:  notDamaged,
}, {
	Category: job.CheckpointError, Signature: "checkpoint-exception", Confidence: 0.85,
	Hint:    checkpointHint,
	Needles: []string{"end of file", "unexpected eof", "truncated", "corrupt", "checksum", "bad magic", "crc error", "crc mismatch", "crc-32", "premature end", "cut short"},
	Match:   textmatch.New(`(?i)\b(?:(?:unexpected|premature) (?:end of file|EOF|end)|truncated|corrupt\w*|checksum (?:mismatch|error|failed)|bad magic|crc(?:-?32)? (?:error|mismatch)|cut short)\b.{0,60}['" /](?P<artefact>[^\s'"]*(?:restart|checkpoint|ckpt|snapshot|\.rst\b|\.chk\b|\.cpt\b)[^\s'"]*)`),
	Unless:  notDamaged,
}, {
	Category: job.CheckpointError, Signature: "checkpoint-exception", Confidence: 0.8,
	Hint:    checkpointHint,
	Needles: []string{"cannot read/write checkpoint; corrupt file", "error: while reading wavecar", "is not a valid restart file", "invalid flag in peratom section of restart file", "checkpoint file corrupted", "the file has been replaced or its"},
}}
