package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// semantic returns a rule for exceptions which mean that the code does not fit its data or libraries.
func semantic(signature, meaning, hint string, classes ...string) rule.Rule {
	return rule.Rule{Category: job.SemanticError, Signature: signature, Meaning: meaning, Hint: hint, Confidence: 0.9, Classes: classes}
}

// torch returns a rule for exceptions whose text says more than their class.
func torch(signature, meaning, hint string, needles ...string) rule.Rule {
	return rule.Rule{Category: job.SemanticError, Signature: signature, Meaning: meaning, Hint: hint, Confidence: 0.95, Classes: []string{"*"}, Needles: needles}
}

const traceHint = "read the traceback from its last line upwards; the place named is the job's own code"

var semanticError = []rule.Rule{
	torch("torch-shape-mismatch", "the shapes of tensors or arrays do not fit together (PyTorch, TensorFlow, JAX, NumPy)",
		"print the shapes before the line named and compare them with what the layer or operation expects", "shapes cannot be multiplied", "must match the size of tensor", "must match the existing size", "sizes of tensors must match", "shape mismatch", "not aligned: ", "could not be broadcast", "is invalid for input of size", "stack expects each tensor to be equal size", "expected more than 1 value per channel",
		"incompatible shapes", "incompatible shape", "cannot reshape array", "expected input batch_size", "same number of dimensions", "dimension out of range", "expected input[", "input.size(-1) must be equal to", "all the input array dimensions", "matmul: input operand", "setting an array element with a sequence", "expected 3d or 4d", "expected 4d", "expected 3d", "expected 2d array", "matrix dimensions must match", "dimensions must match", "numel: integer multiplication overflow",
		"size mismatch, ", "mat1 dim 1 must match mat2 dim 0", "doesn't match the broadcast shape", "kernel size can't be greater than actual input size", "does not match the shape of the indexed tensor", "invalid shape dimension", "cannot reshape tensor", "view size is not compatible", "weight should contain ", "running_mean should contain ", "a non-empty list of tensors", "expected sequence of length ",
		"exceeds dimension size", "expects split_sizes to sum exactly", "must be a 3d tensor", "must be a 2d tensor", "mat2 must be a matrix", "must be 2-d", "1d tensors expected", "number of dims don't match in permute", "the number of sizes provided", "and output sizes should be greater than 0", "padding size should be less than", "must have the same number of dimensions", "are out of bounds for storage of size", "inhomogeneous shape", "arrays have incompatible sizes for this operation",
		"incorrect dimensions for matrix multiplication", "nonconformant arguments", "non-conformable arguments", "index tensor must have the same", "sizes do not match in ", "requires that the size of tensor", "same size as output size times world size", "doesn't match total dim 0 size", "dosen't match total dim 0 size", "nonconforming object sizes", "input tensors must be of the same size", "must have same shape", "inconsistent tensor size"),
	torch("torch-device-mismatch", "tensors on different devices in one operation",
		"move the model and every tensor of the batch to the same device, e.g. x = x.to(device)", "expected all tensors to be on the same device", "expected object of device type", "is on cpu, but expected", "input and hidden tensors are not at the same device", "input type (torch.cuda.floattensor) and weight type (torch.floattensor)", "input type (torch.floattensor) and weight type (torch.cuda.floattensor)",
		"should be on the same device", "can't convert cuda:", "expects tensor to be on the compute device", "got mixed torch.tensor and dtensor", "no backend type associated with device type", "cannot copy out of meta tensor", "cannot be called on meta tensors", "parameters or buffers when internally moving", "module must have its parameters and buffers on device", "to a storage on different device", "pointer argument (at 0) cannot be accessed from triton", "indices should be either on cpu or on the same device"),
	torch("torch-dtype-mismatch", "the number types of tensors do not fit together, or the operation does not support them",
		"convert one side, e.g. x = x.float() or model.to(x.dtype); under autocast leave the types to it", "must have the same dtype", "expected scalar type", "not implemented for '", "expected object of scalar type", "found dtype", "can't be cast to the desired output type", "expected floating point type", "expected m1 and m2 to have the same dtype", "same dtype, but got", "should be the same or input should be a mkldnn tensor", "input type (",
		"tensors used as indices must be long", "expected dtype", "must have the same scalar type", "same scalar type", "to have one of the following scalar types", "to have the same dtype", "bool tensor, is not supported", "a bool tensor is not supported", "source and destination dtypes match",
		"flatten tensors with uniform dtype", "only tensors of floating point", "dtype to be bool", "only support fp16 and bf16", "only supports fp16 and bf16", "no available kernel. aborting execution", "input type and weight type", "self and other to have the same"),
	torch("torch-target-range", "a class label is outside the range of the model's outputs",
		"check the labels of the dataset against the number of classes of the last layer; ignore_index exists for labels to be left out", "is out of bounds.", "class values must be smaller than num_classes", "index out of range in self"),
	{
		Category: job.SemanticError, Signature: "python-index-error", Confidence: 0.9,
		Meaning: "an index outside the sequence",
		Hint:    traceHint + "; print the length there",
		Classes: []string{"*"},
		Needles: []string{"is out of bounds for ", "selected index k out of range", "index exceeds dimension bound", "out of bound; value", "index exceeds matrix dimensions", "index exceeds the number of array elements"},
	},
	torch("torch-autograd", "a backward pass through a graph that does not allow it",
		"look for detach(), no_grad(), in-place operations, or a second backward() before the line named", "does not require grad and does not have a grad_fn", "trying to backward through the graph a second time", "modified by an inplace operation", "a leaf variable that requires grad", "a view of a leaf variable", "grad can be implicitly created only for scalar outputs",
		"can't call numpy() on tensor that requires grad", "inplace update to inference tensor", "inference tensors cannot be saved for backward", "support the deepcopy protocol", "derivative for aten::", "appears to not have been used in the graph", "that requires grad is being used in an in-place operation", "backward pass is invalid for module in evaluation mode", "no_sync context manager is incompatible", "can only be called once per", "checkpointing is not compatible with .grad()",
		"different number of tensors was saved during the original forward", "recomputed values for the following tensors have different metadata", "unscale_() has already been called", "no inf checks were recorded for this optimizer", "attempting to unscale fp16 gradients", "optimizer got an empty parameter list"),
	torch("ddp-unused-parameters", "some parameters took no part in the loss, which DistributedDataParallel does not expect",
		"pass find_unused_parameters=True to DistributedDataParallel, or let every parameter take part in the loss", "expected to have finished reduction in the prior iteration", "mark a variable ready only once", "any parameters that require a gradient"),
	torch("torch-state-dict", "the checkpoint is of another model: its keys or shapes differ",
		"build the model with the settings that the checkpoint was written with, or load it with strict=False knowing what is left out", "in loading state_dict for", "loaded state dict contains a parameter group", "loaded state dict has a different number", "copying a param with shape", "not found in checkpoint", "doesn't match the size of the optimizer's group", "you are trying to load a weight file containing", "used a dp world size of",
		"layer count mismatch when loading weights", "size mismatch for ", "not compatible with the structure of the checkpoint", "expected shape to be compatible with", "tree structures do not match"),
	{
		Category: job.SemanticError, Signature: "torch-weights-only", Confidence: 0.95,
		Meaning: "torch.load refuses a file with more than weights in it (weights_only, the default since PyTorch 2.6)",
		Hint:    "allow the classes named with torch.serialization.add_safe_globals, or pass weights_only=False if you trust the source of the file",
		Classes: []string{"UnpicklingError"},
		Match:   textmatch.New(`Unsupported (?:global|class): (?:GLOBAL )?(?P<artefact>[\w.]+)|(?P<artefact>[\w.]+) was not an allowed global`),
	},
	torch("torch-map-location", "a checkpoint that was written on a GPU is loaded without one",
		"pass map_location=\"cpu\" (or the rank's device) to torch.load", "attempting to deserialize object on a cuda device", "attempting to deserialize object on cuda device"),
	{
		Category: job.SemanticError, Signature: "torch-misuse", Confidence: 0.85,
		Meaning: "PyTorch refuses a call: a tensor, a parameter or a module is not what the operation needs",
		Hint:    traceHint + "; print the shape, type and device of the tensors there",
		Classes: []string{"*"},
		Match: textmatch.New(`(?i:^(?:\w+\.)*RuntimeError:? .*\b(?:tensors?|dtypes?|requires_grad|autocast|torchscript|state_dict|autograd|aten::\w+|linalg\.\w+|lightningmodule|scaled_dot_product_attention|expected target size|invalid gradient at index|invalid multinomial distribution|` +
			`no active exception to reraise|resize storage|expected shape|spatial targets|expects all elements of|elements of input should be between|unable to cast python instance|must have the same size|size\(-?\d\)|nn\.\w+|broadcast\w*|bounds|negative dimensions?|dimensions? mismatch)\b)`),
		Unless: textmatch.New(`(?i)out of memory|alloc|collective|connection|closed by peer|timed? ?out|corrupt|zip archive|no space|nccl|gloo|cuda error|cudnn|cublas|\.pth?\b|checkpoint|ckpt`),
	},
	{
		Category: job.SemanticError, Signature: "torch-shape-mismatch", Confidence: 0.8,
		Hint:    "print the shapes before the line named and compare them with what the layer or operation expects",
		Classes: []string{"RuntimeError", "ValueError", "InvalidArgumentError", "TypeError"},
		Match:   textmatch.New(`(?i)\b(?:expect(?:s|ed)?|requires?|must (?:be|have|match))\b.{0,80}\b(?:shapes?|sizes?|(?:\d-?)?dim\w*|channels?|features?|ndim|rank \d)\b.{0,80}\b(?:got|but (?:found|received|given|has|is|was))\b`),
		Unless:  textmatch.New(`(?i)target size|found invalid values|world[ _]?size|file|checkpoint|ckpt|state_dict|bytes|batch[ _]size`),
	},
	torch("torch-fork-cuda", "CUDA was used before a fork", "use the spawn start method (multiprocessing_context=\"spawn\"), or touch CUDA only after the fork",
		"cannot re-initialize cuda in forked subprocess", "poison_fork", "cuda initialized before forking"),
	{
		Category: job.SemanticError, Signature: "cuda-device-assert", Confidence: 0.95,
		Meaning: "an assertion in a GPU kernel failed: an index or a label is out of range",
		Hint:    "run once with CUDA_LAUNCH_BLOCKING=1 (or on the CPU) to see the line; check labels and embedding indices",
		Needles: []string{"srcindex < srcselectdimsize", "index out of bounds", "t >= 0 && t < n_classes", "cur_target >= 0 && cur_target < n_classes", "ind >=0 && ind < ind_dim_size"},
		Match:   textmatch.New("block: \\[.*thread: \\[.*Assertion `(?P<artefact>.+)` failed"),
	}, {
		Category: job.SemanticError, Signature: "collective-mismatch", Confidence: 0.9,
		Meaning: "the ranks call different collectives, or the same one with different sizes",
		Hint:    "every rank must make the same calls in the same order with the same shapes: look for a rank-dependent branch or last batch",
		Find:    textmatch.New(`but Rank (?P<rank>\d+) is running`),
		Needles: []string{"detected mismatch between collectives", "op.preamble.length <= op.nbytes", "collectivefingerprint", "expects same model across all ranks", "not to match sizes of the same param in process 0"},
	},
	{
		Category: job.SemanticError, Signature: "python-misuse", Confidence: 0.9,
		Meaning: "a construct of Python is used in a way that it does not allow",
		Hint:    traceHint,
		Classes: []string{"*"},
		Needles: []string{"an attempt has been made to start a new process before", "generator raised stopiteration", "dictionary changed size during iteration", "cannot be called from a running event loop", "default process group has not been initialized", "expected a 'cuda' device type for generator", "this event loop is already running", "set changed size during iteration", "trying to initialize the default process group twice", "event loop is closed", "context has already been set", "no running event loop", "attached to a different loop",
			"cannot reuse already awaited coroutine", "deque mutated during iteration", "coroutine was expected", "daemonic processes are not allowed to have children", "synchronized objects should only be shared between processes", "can only join an iterable", "can't pickle ", "cannot pickle ", "super-class __init__", "threads can only be started once"},
		Unless: textmatch.New(`(?i)warning:`),
	}, {
		Category: job.SemanticError, Signature: "python-misuse", Confidence: 0.9,
		Hint: traceHint,
		Classes: []string{"StopIteration", "StopAsyncIteration", "PicklingError", "MaybeEncodingError", "InvalidStateError", "BufferError", "ReferenceError", "CycleError", "SameFileError", "PatternError", "re.error", "sre_constants.error", "copy.Error", "PydanticUserError", "PydanticSchemaGenerationError",
			"PydanticUndefinedAnnotation", "PydanticInvalidForJsonSchema", "DeprecationWarning", "FutureWarning", "UserWarning", "PendingDeprecationWarning", "DuplicateFlagError", "UnparsedFlagAccessError", "cv2.error", "ParamValidationError", "UnknownServiceError", "InstantiationException"},
	},
	semantic("library-type-error", "a library cannot compile or trace the code for the types and shapes that it gets", traceHint, "TypingError", "LoweringError", "UnsupportedError", "TracerArrayConversionError", "TracerBoolConversionError", "TracerIntegerConversionError", "ConcretizationTypeError", "UnexpectedTracerError", "InvalidIndexError", "MergeError", "UndefinedError", "TemplateSyntaxError", "NotFittedError", "DimensionalityError", "CompilationError", "TorchRuntimeError", "InternalTorchDynamoError", "Unsupported", "UserError", "InductorError", "LoweringException", "FailOnRecompileLimitHit", "RecompileError", "RecompileLimitExceeded", "ConstraintViolationError", "GuardOnDataDependentSymNode", "UncapturedHigherOrderOpError", "TraceError", "NotSupportedError", "UnsupportedOperatorError", "OnnxExporterError",
		"SymbolicValueError", "TorchExportError", "FrontendError", "OutOfResources", "CompileTimeAssertionFailure", "CompileException", "NumbaTypeError", "NumbaValueError", "UnsupportedBytecodeError", "NumbaNotImplementedError", "UntypedAttributeError", "ForceLiteralArg", "KeyReuseError", "NonConcreteBooleanIndexError", "OperatorNotAllowedInGraphError", "InaccessibleTensorError", "AutoGraphError", "StagingError", "EquinoxRuntimeError", "_EquinoxRuntimeError", "AxisError", "DTypePromotionError", "UFuncTypeError", "_UFuncNoLoopError", "_UFuncInputCastingError", "_UFuncOutputCastingError", "InvalidParameterError",
		"ColumnNotFoundError", "ShapeError", "ComputeError", "InvalidOperationError", "DuplicateError", "StructFieldNotFoundError", "SchemaFieldNotFoundError", "OutOfBoundsError", "RowsError", "TooManyRowsReturnedError", "NoRowsReturnedError", "StringCacheMismatchError", "SQLInterfaceError", "ArrowKeyError", "ArrowNotImplementedError", "ArrowIndexError", "ArrowCapacityError", "IntCastingNaNError", "OutOfBoundsDatetime", "OutOfBoundsTimedelta", "UndefinedVariableError", "SpecificationError", "DuplicateLabelError", "IndexingError", "UnsortedIndexError", "NullFrequencyError", "LossySetitemError", "AbstractMethodError", "IncompatibleFrequency", "UnsupportedFunctionCall", "DateParseError", "PossibleDataLossError", "SettingWithCopyError", "ChainedAssignmentError",
		"CoordinateValidationError", "AlignmentError", "BoundsCheckError", "ReadOnlyError", "CatBoostError", "ParameterError", "AnalysisException", "TemplateNotFound", "TemplateRuntimeError", "TemplateAssertionError", "ModuleAttributeError", "EinopsError", "TypeCheckError", "BeartypeCallHintParamViolation", "BeartypeCallHintReturnViolation", "MissingDimensionsError", "DGLError", "NameNotFound", "ResetNeeded", "NetworkXError", "NodeNotFound", "NetworkXNoPath", "NetworkXUnfeasible", "UFLException", "SympifyError", "MlflowException", "UndefinedUnitError", "UnitConversionError", "UnitsError", "UnitTypeError", "OffsetUnitCalculusError", "ZeRORuntimeException", "ApplyScopeInvalidVariablesTypeError", "ApplyScopeInvalidVariablesStructureError",
		"ScopeParamNotFoundError", "ScopeVariableNotFoundError", "ScopeCollectionNotFound", "ModifyScopeVariableError", "InvalidScopeError", "InvalidRngError", "NameInUseError", "SetAttributeFrozenModuleError", "SetAttributeInModuleSetupError", "MultipleMethodsCompactError", "AssignSubModuleError", "CallCompactUnboundModuleError", "CallSetupUnboundModuleError", "CallUnbindOnUnboundModuleError", "JaxTransformError", "TransformTargetError", "TransformedMethodReturnValueError", "PartitioningUnspecifiedError", "LazyInitError", "TraceContextError", "ReservedModuleAttributeError", "DescriptorAttributeError"),
	semantic("database-statement", "a database refuses a statement: a constraint, a name, the syntax", traceHint+"; the statement is in the message", "IntegrityError", "ProgrammingError", "StatementError", "InvalidRequestError", "NoSuchTableError", "NoSuchColumnError", "NoReferencedTableError", "NoResultFound",
		"MultipleResultsFound", "UnmappedInstanceError", "UnmappedClassError", "DetachedInstanceError", "UniqueViolation", "UndefinedTable", "UndefinedColumn", "NotNullViolation", "ForeignKeyViolation", "CheckViolation", "CatalogException", "BinderException"),
	{
		Category: job.SemanticError, Signature: "database-statement", Confidence: 0.9,
		Hint:    traceHint,
		Classes: []string{"OperationalError", "DatabaseError"},
		Needles: []string{"no such table", "no such column", "syntax error", "has no column named", "unknown column", "doesn't exist", "already exists", "values for "},
	},
	semantic("python-value-error", "a value of the right type that the code cannot use", traceHint, "ValueError", "UnicodeEncodeError", "UnicodeTranslateError"),
	{
		Category: job.SemanticError, Signature: "python-value-error", Confidence: 0.85,
		Hint:    traceHint,
		Classes: []string{"*"},
		Match:   textmatch.New(`^(?:\w+\.)*\w+(?:Value|Type|Key|Index|Attribute|Shape|Dimension|DType|Dtype|Argument|NotImplemented|ZeroDivision)Error(?::|$|\n)`),
		Unless:  textmatch.New(`constraint|^(?:\w+\.)*(?:\w*Config|Interpolation|MissingValue|WrongType|InvalidArgument|ArgumentType|IllegalFlag|DuplicateKey|Flag|Arrow|FileType|UnknownFileType|ContentType|\w*Input|\w*Option|\w*Setting|\w*CommandLine|ApiKey|API)\w*Error`),
	},
	semantic("python-type-error", "a value of the wrong type, or a call with arguments that the function does not take", traceHint+"; after an update of a library compare its signatures", "TypeError"),
	semantic("python-key-error", "a key that is not in the mapping", traceHint+"; print the keys there", "KeyError"),
	semantic("python-index-error", "", traceHint+"; print the length there", "IndexError", "LookupError"),
	semantic("python-attribute-error", "an attribute that the object does not have", traceHint+"; a module without the attribute is mostly of another version", "AttributeError"),
	semantic("python-name-error", "a name that is not defined", traceHint, "NameError", "UnboundLocalError"),
	semantic("python-zero-division", "a division by zero", traceHint+"; an empty dataset or batch is the usual divisor", "ZeroDivisionError"),
	semantic("python-arithmetic", "arithmetic that has no result: overflow, invalid operation", traceHint, "OverflowError", "InvalidOperation", "DivisionByZero", "ConversionSyntax", "StatisticsError", "RuntimeWarning"),
	semantic("python-not-implemented", "a method or case that is not implemented", traceHint, "NotImplementedError"),
	semantic("tensorflow-argument", "an operation refused its arguments (TensorFlow, JAX)", traceHint,
		"InvalidArgumentError", "FailedPreconditionError", "UnimplementedError", "TracerArrayConversionError", "TracerBoolConversionError", "ConcretizationTypeError", "ScopeParamShapeError", "OutOfRangeError"),
	{
		Category: job.SemanticError, Signature: "tensorflow-argument", Confidence: 0.9,
		Hint:    traceHint,
		Classes: []string{"XlaRuntimeError", "JaxRuntimeError", "InternalError"},
		Match:   textmatch.New(`\w+: (?:INVALID_ARGUMENT|UNIMPLEMENTED|OUT_OF_RANGE)\b`),
	},
	semantic("cpp-logic-error", "a C++ exception for what the program should not do: bad argument, index or length",
		"run the program in a debugger and break on throw (gdb: catch throw)", "std::out_of_range", "std::invalid_argument", "std::length_error", "std::domain_error", "std::bad_cast", "std::bad_variant_access", "std::bad_optional_access", "std::bad_function_call"),
	semantic("julia-error", "a Julia exception of the program's own making", "read the stack trace from its first entry downwards",
		"MethodError", "BoundsError", "DimensionMismatch", "UndefVarError", "DomainError", "ArgumentError", "InexactError", "DivideError", "UndefRefError", "StringIndexError", "FieldError", "UndefKeywordError", "CanonicalIndexError", "ConcurrencyViolationError", "StackOverflowError", "InvalidStateException", "MissingException", "DimensionMismatchError"),
	{
		Category: job.SemanticError, Signature: "panic-index", Confidence: 0.9,
		Meaning: "a Go or Rust panic for a fault of the program: an index, a division, a conversion, a channel, a lock",
		Hint:    "look at the first of the program's own functions in the stack trace",
		Classes: []string{"go panic", "rust panic"},
		Needles: []string{"index out of range", "index out of bounds", "out of range for slice", "slice bounds out of range", "divide by zero", "interface conversion", "nil map", "called `option::unwrap()` on a `none`", "subtract with overflow", "add with overflow",
			"multiply with overflow", "close of closed channel", "send on closed channel", "close of nil channel", "makeslice: ", "negative waitgroup counter", "unlock of unlocked", "reflect: call of ", "hash of unhashable type", "is not a char boundary", "already borrowed", "already mutably borrowed",
			"entered unreachable code", "not implemented", "not yet implemented", "does not match destination slice length", "should be < len", "capacity overflow", "chunk size must be non-zero", "remainder with a divisor of zero", "shift left with overflow", "attempt to negate with overflow", "flag redefined: ", "mid > len", "must be non-zero"},
	}, {
		Category: job.SemanticError, Signature: "fortran-runtime", Confidence: 0.85,
		Meaning: "a Fortran runtime error: array bounds, allocation, formats",
		Hint:    "look at the line named; -g -fcheck=all -fbacktrace tells more",
		Classes: []string{"fortran runtime error", "forrtl severe"},
	}, {
		Category: job.SemanticError, Signature: ProgramError, Confidence: 0.8,
		Meaning: "the program printed an error message and ended itself with an exit code, MPI_Abort or abort()",
		Hint:    "the message is the program's own: its documentation tells what it means",
		Classes: []string{rule.Message},
	}, {
		Category: job.SemanticError, Signature: ProgramError, Confidence: 0.7, Traits: rule.Weak,
		Hint:    "the code is the program's own: look in its source for the ERROR STOP with it",
		Needles: []string{"error stop"},
		Match:   textmatch.New(`^(?:Fortran )?ERROR STOP(?: *\d+|: code \d+)?$`),
	}, {
		Category: job.SemanticError, Signature: ProgramError, Confidence: 0.7, Traits: rule.Weak | rule.Generic,
		Hint:    "the lines above it say what is wrong",
		Needles: []string{"refuse to continue with this sick job"},
	}, {
		Category: job.SemanticError, Signature: "julia-error", Confidence: 0.85,
		Hint:    "read the stack trace from its first entry downwards",
		Classes: []string{"TypeError"},
		Needles: []string{"used in boolean context"},
	}, {
		Category: job.SemanticError, Signature: "script-error", Confidence: 0.85,
		Meaning: "a statement of an R, MATLAB or Octave program cannot be carried out",
		Hint:    "look at the call that the message names: a name that is not defined, sizes or types that do not fit",
		Needles: []string{"object '", "object ‘", "could not find function \"", "non-numeric argument", "non-conformable ar", "subscript out of bounds", "undefined columns selected", "arguments imply differing number of rows", "missing value where true/false needed", "is missing, with no default",
			"replacement has ", "unused argument", "argument is of length zero", "non-function", "invalid 'type' (", "na/nan/inf in foreign function call", "undefined function or variable", "unrecognized function or variable", "index exceeds the number of array elements", "index exceeds matrix dimensions",
			"incorrect dimensions for matrix multiplication", "arrays have incompatible sizes", "matrix dimensions must agree", "not enough input arguments", "too many input arguments", "nonconformant arguments", "out of bound; value", "subscript out of range", "' undefined", "$ operator is invalid for atomic vectors", "non-(na) cases", "0 (non-na) cases"},
		Match:  textmatch.New(`(?i)^\s*(?:Error (?:in|using|:) .*|error: (?:.*[^']|'\w+' undefined))$|^(?:Undefined function or variable|Unrecognized function or variable|Index exceeds|Incorrect dimensions|Arrays have incompatible sizes|Matrix dimensions must agree|Not enough input arguments|Too many input arguments)`),
		Unless: textmatch.New(`(?i)warning|attached? |masked|masking`),
	}, {
		Category: job.SemanticError, Signature: "script-error", Confidence: 0.85,
		Hint:    "look at the line that the message names",
		Classes: []string{"perl die"},
		Match:   textmatch.New(`(?i)^(?:can't locate object method|can't call method|undefined subroutine|not an? \w+ reference|can't use (?:string|an undefined|bareword)|illegal division by zero|modification of|can't (?:modify|coerce)|attempt to|experimental|global symbol)`),
	}, {
		Category: job.SemanticError, Signature: "java-exception", Confidence: 0.85,
		Meaning: "a Java or Scala exception for a fault of the program: null, an index, an argument, a state",
		Hint:    "look at the first of the program's own classes in the stack trace",
		Needles: []string{"exception in thread \""},
		Match:   textmatch.New(`(?:NullPointer|IndexOutOfBounds|ArrayIndexOutOfBounds|StringIndexOutOfBounds|ClassCast|IllegalArgument|IllegalState|NumberFormat|Arithmetic|UnsupportedOperation|NoSuchElement|ConcurrentModification|NegativeArraySize|ArrayStore|DateTimeParse|InputMismatch|Analysis)Exception|StackOverflowError|NoSuchMethodError|NoSuchFieldError|MatchError|AbstractMethodError|IncompatibleClassChangeError`),
	}, {
		Category: job.SemanticError, Signature: "fortran-runtime", Confidence: 0.85,
		Hint:    "look at the line named; -g -Mbounds or -check all tells more",
		Needles: []string{"subscript out of range for array", "deallocate: memory at", "allocate: array already allocated", "runtime error: ", "null pointer for "},
		Match:   textmatch.New(`^\d+: (?:Subscript out of range for array|DEALLOCATE: memory at|ALLOCATE: array already allocated|Null pointer for )|^Runtime Error: \S+, line \d+:|fatal Fortran runtime error`),
		Unless:  textmatch.New(`(?i)does not exist|not found|end of file|no such file|permission|not enough memory`),
	}, {
		Category: job.SemanticError, Signature: "library-misuse", Confidence: 0.85,
		Meaning: "a numerical library says that the program called it wrongly (PETSc, BLAS, LAPACK)",
		Hint:    "look at the call that the message names, and at the sizes and the state of its arguments",
		Classes: []string{rule.Message},
		Match:   textmatch.New(`(?i)argument out of range|nonconforming object sizes|arguments are incompatible|object is in wrong state|null argument, when expecting|invalid pointer to object|wrong type of object|arguments must have same communicators|zero pivot|invalid argument`),
		Unless:  textmatch.New(`(?i)option|command.?line|os error|errno`),
	}, {
		Category: job.SemanticError, Signature: "library-misuse", Confidence: 0.85,
		Hint:    "look at the call that the message names, and at the sizes and the state of its arguments",
		Classes: []string{"Error"},
		Match:   textmatch.New(`^petsc4py\.PETSc\.Error: error code (?:56|60|61|62|63|64|68|73|75|80|85)\b`),
	}, {
		Category: job.SemanticError, Signature: "data-race", Confidence: 0.85,
		Meaning: "two threads of a Go program use the same data at the same time",
		Hint:    "guard the data with a mutex, at the places that the report names",
		Needles: []string{"warning: data race", "concurrent map writes", "concurrent map read and map write", "concurrent map iteration and map write"},
	}}

// ProgramError is the signature of a program's own error message that no other rule knows.
const ProgramError = "program-error"
