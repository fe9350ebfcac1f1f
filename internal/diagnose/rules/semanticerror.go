package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// semantic makes a rule for exceptions that mean that the code does not fit
// its data or libraries.
func semantic(signature, meaning, hint string, classes ...string) Rule {
	return Rule{Category: job.SemanticError, Signature: signature, Meaning: meaning, Hint: hint, Confidence: 0.9, Classes: classes}
}

// torch makes a rule for exceptions whose text says more than their class.
func torch(signature, meaning, hint string, needles ...string) Rule {
	return Rule{Category: job.SemanticError, Signature: signature, Meaning: meaning, Hint: hint, Confidence: 0.95, Classes: []string{"*"}, Needles: needles}
}

const traceHint = "read the traceback from its last line upwards; the place named is the job's own code"

var semanticError = []Rule{
	torch("torch-shape-mismatch", "the shapes of tensors or arrays do not fit together (PyTorch, TensorFlow, JAX, NumPy)",
		"print the shapes before the line named and compare them with what the layer or operation expects",
		"shapes cannot be multiplied", "must match the size of tensor", "must match the existing size", "sizes of tensors must match", "shape mismatch", "not aligned: ",
		"could not be broadcast", "is invalid for input of size", "stack expects each tensor to be equal size", "expected more than 1 value per channel",
		"incompatible shapes", "incompatible shape", "cannot reshape array", "expected input batch_size", "same number of dimensions", "dimension out of range",
		"expected input[", "input.size(-1) must be equal to", "all the input array dimensions", "matmul: input operand", "setting an array element with a sequence",
		"expected 3d or 4d", "expected 4d", "expected 3d", "expected 2d array", "matrix dimensions must match", "dimensions must match", "numel: integer multiplication overflow"),
	torch("torch-device-mismatch", "tensors on different devices in one operation",
		"move the model and every tensor of the batch to the same device, e.g. x = x.to(device)",
		"expected all tensors to be on the same device", "expected object of device type", "is on cpu, but expected", "input and hidden tensors are not at the same device",
		"input type (torch.cuda.floattensor) and weight type (torch.floattensor)", "input type (torch.floattensor) and weight type (torch.cuda.floattensor)",
		"should be on the same device", "pointer argument (at 0) cannot be accessed from triton", "indices should be either on cpu or on the same device"),
	torch("torch-dtype-mismatch", "the number types of tensors do not fit together, or the operation does not support them",
		"convert one side, e.g. x = x.float() or model.to(x.dtype); under autocast leave the types to it",
		"must have the same dtype", "expected scalar type", "not implemented for '", "expected object of scalar type", "found dtype", "can't be cast to the desired output type",
		"expected floating point type", "expected m1 and m2 to have the same dtype", "same dtype, but got", "should be the same or input should be a mkldnn tensor", "input type (",
		"tensors used as indices must be long", "expected dtype"),
	torch("torch-target-range", "a class label is outside the range of the model's outputs",
		"check the labels of the dataset against the number of classes of the last layer; ignore_index exists for labels to be left out",
		"is out of bounds.", "class values must be smaller than num_classes", "index out of range in self"),
	torch("torch-autograd", "a backward pass through a graph that does not allow it",
		"look for detach(), no_grad(), in-place operations, or a second backward() before the line named",
		"does not require grad and does not have a grad_fn", "trying to backward through the graph a second time", "modified by an inplace operation", "a leaf variable that requires grad",
		"a view of a leaf variable", "grad can be implicitly created only for scalar outputs"),
	torch("ddp-unused-parameters", "some parameters took no part in the loss, which DistributedDataParallel does not expect",
		"pass find_unused_parameters=True to DistributedDataParallel, or let every parameter take part in the loss",
		"expected to have finished reduction in the prior iteration", "mark a variable ready only once"),
	torch("torch-state-dict", "the checkpoint is of another model: its keys or shapes differ",
		"build the model with the settings that the checkpoint was written with, or load it with strict=False knowing what is left out",
		"in loading state_dict for", "loaded state dict contains a parameter group", "loaded state dict has a different number", "copying a param with shape"),
	torch("torch-map-location", "a checkpoint that was written on a GPU is loaded without one",
		"pass map_location=\"cpu\" (or the rank's device) to torch.load",
		"attempting to deserialize object on a cuda device", "attempting to deserialize object on cuda device"),
	torch("torch-fork-cuda", "CUDA was used before a fork", "use the spawn start method (multiprocessing_context=\"spawn\"), or touch CUDA only after the fork",
		"cannot re-initialize cuda in forked subprocess", "poison_fork"),
	{
		Category: job.SemanticError, Signature: "cuda-device-assert", Confidence: 0.95,
		Meaning: "an assertion inside a GPU kernel failed, usually because an index or label is out of range",
		Hint:    "run once with CUDA_LAUNCH_BLOCKING=1 (or on the CPU) to see the line; check labels and embedding indices",
		Needles: []string{"srcindex < srcselectdimsize", "index out of bounds", "t >= 0 && t < n_classes", "cur_target >= 0 && cur_target < n_classes", "ind >=0 && ind < ind_dim_size"},
		Match:   textmatch.New("block: \\[.*thread: \\[.*Assertion `(?P<artefact>.+)` failed"),
	}, {
		Category: job.SemanticError, Signature: "collective-mismatch", Confidence: 0.9,
		Meaning: "the ranks do not call the same collective, or with different sizes",
		Hint:    "every rank must make the same calls in the same order with the same shapes: look for a rank-dependent branch or last batch",
		Find:    textmatch.New(`but Rank (?P<rank>\d+) is running`),
		Needles: []string{"detected mismatch between collectives", "op.preamble.length <= op.nbytes", "collectivefingerprint"},
	},
	{
		Category: job.SemanticError, Signature: "python-misuse", Confidence: 0.9,
		Meaning: "a construct of Python is used in a way that it does not allow",
		Hint:    traceHint,
		Classes: []string{"*"},
		Needles: []string{"an attempt has been made to start a new process before", "generator raised stopiteration", "dictionary changed size during iteration", "cannot be called from a running event loop", "default process group has not been initialized", "expected a 'cuda' device type for generator", "this event loop is already running", "set changed size during iteration"},
	}, {
		Category: job.SemanticError, Signature: "data-race", Confidence: 0.85,
		Meaning: "a sanitizer found a data race or undefined behaviour",
		Hint:    debugHint,
		Needles: []string{"threadsanitizer: data race", "threadsanitizer: reported", "warning: data race", "undefinedbehaviorsanitizer: undefined-behavior"},
	},
	semantic("library-type-error", "a library cannot compile or trace the code for the types and shapes that it gets", traceHint, "TypingError", "LoweringError", "UnsupportedError", "TracerArrayConversionError", "TracerBoolConversionError", "TracerIntegerConversionError", "ConcretizationTypeError", "UnexpectedTracerError", "InvalidIndexError", "MergeError", "UndefinedError", "TemplateSyntaxError", "NotFittedError", "DimensionalityError", "CompilationError", "TorchRuntimeError", "BackendCompilerFailed", "InternalTorchDynamoError", "Unsupported"),
	semantic("python-value-error", "a value of the right type that the code cannot use", traceHint, "ValueError"),
	semantic("python-type-error", "a value of the wrong type, or a call with arguments that the function does not take", traceHint+"; after an update of a library compare its signatures", "TypeError"),
	semantic("python-key-error", "a key that is not in the mapping", traceHint+"; print the keys there", "KeyError"),
	semantic("python-index-error", "an index outside the sequence", traceHint+"; print the length there", "IndexError", "LookupError"),
	semantic("python-attribute-error", "an attribute that the object does not have", traceHint+"; a module without the attribute is mostly of another version", "AttributeError"),
	semantic("python-name-error", "a name that is not defined", traceHint, "NameError", "UnboundLocalError"),
	semantic("python-zero-division", "a division by zero", traceHint+"; an empty dataset or batch is the usual divisor", "ZeroDivisionError"),
	semantic("python-arithmetic", "arithmetic that has no result: overflow, invalid operation", traceHint, "OverflowError", "FloatingPointError", "ArithmeticError", "LinAlgError", "InvalidOperation"),
	semantic("python-not-implemented", "a method or case that is not implemented", traceHint, "NotImplementedError"),
	semantic("python-recursion", "a function that calls itself without end", traceHint, "RecursionError"),
	semantic("tensorflow-argument", "an operation refused its arguments (TensorFlow, JAX)", traceHint,
		"InvalidArgumentError", "FailedPreconditionError", "UnimplementedError", "TracerArrayConversionError", "TracerBoolConversionError", "ConcretizationTypeError", "ScopeParamShapeError"),
	semantic("cpp-logic-error", "a C++ exception for what the program should not do: bad argument, index or length",
		"run the program in a debugger and break on throw (gdb: catch throw)",
		"std::out_of_range", "std::invalid_argument", "std::logic_error", "std::length_error", "std::domain_error", "std::bad_cast", "std::bad_variant_access", "std::bad_optional_access", "std::bad_function_call"),
	semantic("julia-error", "a Julia exception of the program's own making", "read the stack trace from its first entry downwards",
		"MethodError", "BoundsError", "DimensionMismatch", "UndefVarError", "DomainError", "ArgumentError", "InexactError", "DivideError", "UndefRefError", "StringIndexError"),
	{
		Category: job.SemanticError, Signature: "panic-index", Confidence: 0.9,
		Meaning: "a Go or Rust panic for an invalid index, division or conversion",
		Hint:    "look at the first of the program's own functions in the stack trace",
		Classes: []string{"go panic", "rust panic"},
		Needles: []string{"index out of range", "index out of bounds", "out of range for slice", "slice bounds out of range", "divide by zero", "interface conversion", "nil map", "called `option::unwrap()` on a `none`", "subtract with overflow", "add with overflow", "nil pointer dereference"},
	}, {
		Category: job.SemanticError, Signature: "fortran-runtime", Confidence: 0.85,
		Meaning: "a Fortran runtime error: array bounds, allocation, formats",
		Hint:    "look at the line named; -g -fcheck=all -fbacktrace tells more",
		Classes: []string{"fortran runtime error", "forrtl severe"},
	}, {
		Category: job.SemanticError, Signature: ProgramError, Confidence: 0.8,
		Meaning: "the program printed an error message and ended itself with an exit code, MPI_Abort or abort()",
		Hint:    "the message is the program's own: its documentation tells what it means",
		Classes: []string{Message},
	},
}

// ProgramError is the signature of a program's own error message that no other
// rule knows.
const ProgramError = "program-error"
