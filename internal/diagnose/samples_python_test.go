package diagnose

// These are samples of faults of programs and their inputs.
func init() {
	what := func(class, what string) string {
		return "terminate called after throwing an instance of '" + class + "'\n  what():  " + what
	}
	julia := func(text string) string {
		return "ERROR: LoadError: " + text + "\nStacktrace:\n [1] top-level scope\nin expression starting at /home/ana/job/a.jl:3"
	}
	goes := "\ngoroutine 1 [running]:\nmain.main()\n\t./a.go:4 +0x14"
	for signature, more := range map[string]struct{ yes, no []string }{
		"missing-file": {
			yes: []string{
				raise("ValueError: File not found: filepath=/m/x.keras. Please ensure the file is an accessible `.keras` zip file."),
				raise("tensorflow.python.framework.errors_impl.NotFoundError: /data/train.tfrecord; No such file or directory [Op:IteratorGetNext]"),
				raise("ValueError: Can't find 'adapter_config.json' at '/out/lora'"),
				raise("rasterio.errors.RasterioIOError: /data/dem.tif: No such file or directory"),
				raise("soundfile.LibsndfileError: Error opening '/data/a.wav': System error."),
				raise("sqlalchemy.exc.OperationalError: (sqlite3.OperationalError) unable to open database file"),
				raise("lmdb.Error: /data/train.lmdb: No such file or directory"),
				raise("zarr.errors.GroupNotFoundError: group not found at path ''"),
				raise("polars.exceptions.NoSuchFile: data/x.parquet"),
				raise("RuntimeError: Exception thrown in SimpleITK ImageFileReader_Execute: ITK ERROR: The file \"/data/ct.nii\" does not exist."),
				"Exception in thread \"main\" java.io.FileNotFoundException: conf.xml (No such file or directory)\n\tat java.base/java.io.FileInputStream.open0(Native Method)",
				"Error: Unable to access jarfile solver.jar",
				"Error in file(file, \"rt\") : cannot open the connection\nCalls: read.csv -> read.table -> file\nExecution halted",
				"Error using load\nUnable to read file 'grid.mat'. No such file or directory.",
				"unzip:  cannot find or open data.zip, data.zip.zip or data.zip.ZIP.", raise("OSError: SavedModel file does not exist at: /m/{saved_model.pbtxt|saved_model.pb}"),
				"FATAL ERROR: Unable to access config file run.namd",
				what("std::runtime_error", "Failed to open mesh file: grid.msh"),
				what("std::filesystem::__cxx11::filesystem_error", "filesystem error: cannot open file: No such file or directory [mesh/block.bin]"),
			},
			no: []string{
				raise("RuntimeError: the file is not there"),
				"config.yaml does not exist, using the defaults\n" + raise("KeyError: 'x'"),
			},
		},
		"argparse": {
			yes: []string{
				raise("ValueError: Some specified arguments are not used by the HfArgumentParser: ['--lrr', '0.1']"),
				"ERROR: Could not consume arg: --lrr\nUsage: train.py <flags>",
				"FATAL Flags parsing error:\n  flag --lr=abc: invalid float value: could not convert string to float: 'abc'\nPass --helpshort or --helpfull to see help on flags.",
				"╭─ Error ──────────────────────────╮\n│ No such option: --lrr            │\n╰──────────────────────────────────╯",
				"error: the following required arguments were not provided:\n  --data <DATA>\n\nUsage: a.out --data <DATA>",
				"error: invalid value 'x' for '--n <N>': invalid digit found in string",
				"./a.out: option '--steps' requires an argument",
				"main.py: error: Parser key \"trainer.devices\":\n  Value \"x\" does not validate against any of the types in typing.Union[list[int], str, int].",
			},
			no: []string{"the option needs a value that requires an argument about units", "Missing option: none\n" + raise("KeyError: 'x'")},
		},
		"bad-config": {
			yes: []string{
				raise("hydra.errors.InstantiationException: Error locating target 'model.Nett', set env var HYDRA_FULL_ERROR=1 to see chained exception."),
				raise("omegaconf.errors.InterpolationKeyError: Interpolation key 'data.root' not found\n    full_key: train.path"),
				raise("configparser.NoSectionError: No section: 'train'"),
				raise("deepspeed.runtime.config_utils.DeepSpeedConfigError: Float16 and bfloat16 cannot be enabled together"),
				raise("lightning.fabric.utilities.exceptions.MisconfigurationException: No supported gpu backend found!"),
				"In 'config': Could not find 'model/resnt'\n\nAvailable options in 'model':\n\tresnet",
				raise("dacite.exceptions.MissingValueError: missing value for field \"lr\""),
				raise("click.exceptions.NoSuchOption: No such option: --lr"),
				raise("train.ConfigError: lr must be positive"), raise("qm.SolverInputError: the basis set is unknown"),
			},
			no: []string{raise("KeyError: 'config'"), raise("ValueError: the ConfigError was handled")},
		},
		"bad-format": {
			yes: []string{
				raise("_csv.Error: line contains NUL"), raise("binascii.Error: Incorrect padding"), raise("struct.error: unpack requires a buffer of 8 bytes"),
				raise("yaml.reader.ReaderError: unacceptable character #x0000: special characters are not allowed"),
				raise("datasets.exceptions.DatasetGenerationCastError: An error occurred while generating the dataset"),
				raise("datasets.exceptions.NonMatchingSplitsSizesError: [{'expected': SplitInfo(name='train')}]"),
				raise("OSError: [Errno -51] NetCDF: Unknown file format: '/data/x.nc'"),
				raise("OSError: Couldn't deserialize thrift: TProtocolException: Invalid data"),
				raise("polars.exceptions.ComputeError: could not parse `n/a` as dtype `i64` at column 'x' (column number 2)"),
				raise("polars.exceptions.NoDataError: empty CSV"),
				raise("Exception: data did not match any variant of untagged enum ModelWrapper at line 757443 column 3"),
				raise("RuntimeError: Internal: could not parse ModelProto from /m/tokenizer.model"),
				raise("ValueError: Wrong number of columns at line 3"),
				what("nlohmann::json_abi_v3_11_2::detail::parse_error", "[json.exception.parse_error.101] parse error at line 3, column 5: syntax error while parsing value"),
				what("YAML::TypedBadConversion<double>", "yaml-cpp: error at line 3, column 5: bad conversion"),
				"thread 'main' panicked at src/main.rs:3:5:\ncalled `Result::unwrap()` on an `Err` value: Error(\"missing field `steps`\", line: 3, column: 1)",
				"thread 'main' panicked at src/main.rs:3:5:\ncalled `Result::unwrap()` on an `Err` value: ParseIntError { kind: InvalidDigit }",
				"panic: json: cannot unmarshal string into Go struct field cfg.workers of type int\n" + goes,
				"2026/11/26 13:20:29 config.json: json: cannot unmarshal string into Go struct field cfg.workers of type int",
				"At line 9 of file read.f90 (unit = 10, file = 'in.nml')\nFortran runtime error: Cannot match namelist object name nstepp",
				"At line 9 of file read.f90 (unit = 10, file = 'x.dat')\nFortran runtime error: Bad real number in item 1 of list input",
				raise("ase.io.formats.UnknownFileTypeError: xyzz"), "End-of-central-directory signature not found.  Either this file is not\n  a zipfile, or it constitutes one disk of a multi-part archive.", "/data/a.mp4: Invalid data found when processing input",
				"forrtl: severe (24): end-of-file during read, unit 10, file /data/x.dat",
				"forrtl: severe (64): input conversion error, unit 10, file /data/x.dat",
				"fatal Fortran runtime error(/home/ana/job/read.f90:3): End of file during input",
			},
			no: []string{
				raise("struct.error: required argument is not an integer"), "forrtl: severe (408): fort: (2): Subscript #1 of the array X has value 11 which is greater than the upper bound of 10",
				raise("EOFError: EOF when reading a line", "input()"),
			},
		},
		"bad-encoding": {yes: []string{"Error: Custom { kind: InvalidData, error: \"stream did not contain valid UTF-8\" }", "Error in gsub(\"a\", \"b\", x) : input string 1 is invalid\nError in nchar(x) : invalid multibyte string, element 1"}, no: []string{"invalid UTF-8 sequence in line 3: skipped\n" + raise("KeyError: 'x'")}},
		"bad-image": {
			yes: []string{
				raise("SyntaxError: not a PNG file"), raise("SyntaxError: broken PNG file (chunk b'\\x00\\x00\\x00\\x00')"), raise("PIL.Image.DecompressionBombError: Image size (400000000 pixels) exceeds limit of 178956970 pixels, could be decompression bomb DOS attack."),
				raise("soundfile.LibsndfileError: Error opening '/data/a.wav': Format not recognised."), raise("audioread.exceptions.NoBackendError"),
			},
			no: []string{raise("SyntaxError: invalid syntax"), "UserWarning: Corrupt JPEG data: 3 extraneous bytes before marker 0xd9\n" + raise("KeyError: 'x'")},
		},
		"bad-archive": {yes: []string{raise("pyzstd.ZstdError: Unable to decompress zstd data: Data corruption detected")}, no: []string{"gzip: 3 files compressed"}},
		"unknown-dataset": {
			yes: []string{
				raise("OSError: Error no file named pytorch_model.bin, model.safetensors, tf_model.h5, model.ckpt.index or flax_model.msgpack found in directory /m/llama."),
				raise("OSError: Can't load tokenizer for 'ana/llamma'. If you were trying to load it from 'https://huggingface.co/models', make sure you don't have a local directory with the same name."),
				raise("ValueError: Unrecognized model in /m/x. Should have a `model_type` key in its config.json."),
				raise("ValueError: BuilderConfig 'wikitext-9' not found. Available: ['wikitext-103-v1']"),
				raise("ValueError: Unknown split \"tran\". Should be one of ['train', 'test']."),
				raise("RuntimeError: Unknown model (resnet51)"),
				raise("botocore.errorfactory.NoSuchBucket: An error occurred (NoSuchBucket) when calling the ListObjectsV2 operation: The specified bucket does not exist"),
				raise("azure.core.exceptions.ResourceNotFoundError: The specified container does not exist."),
			},
			no: []string{raise("ValueError: Unknown optimizer: adamm")},
		},
		"empty-dataset": {yes: []string{raise("FileNotFoundError_: Couldn't find any class folder in /data/train."), raise("ValueError: Found array with 0 sample(s) (shape=(0, 4)) while a minimum of 1 is required by LogisticRegression.")}, no: []string{raise("ValueError: the dataset has 3 samples")}},
		"program-input": {
			yes: []string{
				"     Error in routine latgen (77):\n     nonexistent bravais lattice",
				"ERROR: All pair coeffs are not set (src/pair.cpp:235)\nLast command: run 100",
				"-------------------------------------------------------\nFatal error:\nNo such moleculetype SOL2\n\nFor more information and tips for troubleshooting, please check the GROMACS\n-------------------------------------------------------",
				"FATAL ERROR: UNABLE TO FIND BOND PARAMETERS FOR CT3 CT9 (ATOMS 5 6)",
				"FATAL ERROR: DIDN'T FIND vdW PARAMETER FOR ATOM TYPE HX",
				"ERROR: number of potentials on File POTCAR incompatible with number of species\nINCAR says: NTYP= 3",
				" Error reading item 'ENCUT' from file INCAR.",

				"Error in \"void CConfig::SetConfig_Parsing(std::istream&)\":\n-------------------------------------------------------------------------\nLine 12 CFL_NUMBRE: invalid option name",
				"*** NEMO: misspelled variable in namelist namrun in reference namelist iostat =   19",
				"Abaqus Error: Analysis Input File Processor exited with an error - Please see the  job.dat file for possible error messages if the file exists.",
				" QPErr --- A syntax error was detected in the input line.",
				"                                       !!!  UNRECOGNIZED OR DUPLICATED KEYWORD(S) IN SIMPLE INPUT LINE  !!!",
				"PGFIO-F-209/OPEN/unit=10/'OLD' specified for file which does not exist.\n File name = grid.dat",
				"FIO-F-217/list-directed read/unit=5/attempt to read past end of file.",
				" ERRORS while reading one or more namelists from namelist.input.",
			},
			no: []string{"ERROR: the sum does not add up", "WARNING! There are options you set that were not used!\nWARNING! could be spelling mistake, etc!"},
		},
		"missing-setting": {
			yes: []string{
				raise("RuntimeError: environment variable DATA_ROOT is not set"), raise("ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not set"), raise("botocore.exceptions.NoRegionError: You must specify a region."),
				"ERROR: missing environment variable: WANDB_API_KEY",
			},
			no: []string{"environment variable OMP_NUM_THREADS is not set, using 1", "the environment variable is fine\n" + raise("KeyError: 'x'")},
		},
		"torch-shape-mismatch": {
			yes: []string{
				raise("RuntimeError: Calculated padded input size per channel: (2 x 2). Kernel size: (3 x 3). Kernel size can't be greater than actual input size"),
				raise("RuntimeError: output with shape [1, 3] doesn't match the broadcast shape [2, 3]"), raise("RuntimeError: 'weight' must be 2-D"),
				raise("RuntimeError: view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead."),
				raise("RuntimeError: running_mean should contain 64 elements not 32"), raise("RuntimeError: torch.cat(): expected a non-empty list of Tensors"),
				raise("RuntimeError: start (0) + length (10) exceeds dimension size (5)."), raise("RuntimeError: split_with_sizes expects split_sizes to sum exactly to 10 (input tensor's size at dimension 0), but got split_sizes=[3, 4]"),
				raise("RuntimeError: setStorage: sizes [4096, 4096], strides [4096, 1], storage offset 0, and itemsize 2 requiring a storage size of 33554432 are out of bounds for storage of size 0"),
				raise("RuntimeError: Split sizes dosen't match total dim 0 size"),
				"error: operator +: nonconformant arguments (op1 is 1x2, op2 is 1x3)\n" + raise("RuntimeError: operator +: nonconformant arguments (op1 is 1x2, op2 is 1x3)"),
			},
			no: []string{raise("RuntimeError: the weight is too large")},
		},
		"torch-device-mismatch": {
			yes: []string{
				raise("RuntimeError: aten.addmm.default: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling distributed operators!"),
				raise("RuntimeError: No backend type associated with device type cpu"), raise("TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."),
				raise("NotImplementedError: Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to()"),
			},
			no: []string{raise("RuntimeError: the device is busy")},
		},
		"torch-dtype-mismatch": {
			yes: []string{
				raise("RuntimeError: Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got torch.FloatTensor instead (while checking arguments for embedding)"),
				raise("RuntimeError: Expected query, key, and value to have the same dtype, but got query.dtype: float key.dtype: c10::Half"), raise("ValueError: Must flatten tensors with uniform dtype but got torch.float32 and torch.bfloat16"),
				raise("RuntimeError: FlashAttention only support fp16 and bf16 data type"),
			},
			no: []string{raise("RuntimeError: the type of the model is odd")},
		},
		"python-value-error": {yes: []string{raise("UnicodeEncodeError: 'ascii' codec can't encode character '\\xe9' in position 3: ordinal not in range(128)"), raise("solver.mesh.CellIndexError: cell 12"), raise("ufl.log.UFLValueError: Shapes do not match")}, no: []string{raise("app.MyConfigKeyError: lr"), raise("app.BadValueErrors: x")}},
		"python-index-error": {
			yes: []string{raise("RuntimeError: index 10 is out of bounds for dimension 1 with size 3"), raise("RuntimeError: selected index k out of range"), raise("IndexError: index 5 is out of bounds for axis 0 with size 3"), raise("RuntimeError: NetCDF: Index exceeds dimension bound")},
			no:  []string{raise("RuntimeError: the index is old")},
		},
		"torch-autograd": {
			yes: []string{
				raise("RuntimeError: Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."), raise("RuntimeError: Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal tensor and use it in autograd."),
				raise("torch.utils.checkpoint.CheckpointError: torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the forward pass."),
				raise("ValueError: optimizer got an empty parameter list"), raise("ValueError: Attempting to unscale FP16 gradients."), raise("AssertionError: No inf checks were recorded for this optimizer."),
			},
			no: []string{raise("RuntimeError: gradients are late")},
		},
		"ddp-unused-parameters": {yes: []string{raise("RuntimeError: DistributedDataParallel is not needed when a module doesn't have any parameters that require a gradient.")}, no: []string{raise("RuntimeError: no parameters")}},
		"torch-state-dict": {
			yes: []string{
				raise("tensorflow.python.framework.errors_impl.NotFoundError: Key dense/kernel not found in checkpoint"), raise("ValueError: loaded state dict contains a parameter group that doesn't match the size of the optimizer's group"),
				raise("ValueError: Layer count mismatch when loading weights from file. Model expected 3 layers, found 4 saved layers."),
				raise("deepspeed.runtime.zero.utils.ZeRORuntimeException: The checkpoint being loaded used a DP world size of 8 but the current world size is 4."),
			},
			no: []string{raise("RuntimeError: the checkpoint is old")},
		},
		"torch-weights-only": {
			yes: []string{raise("_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so you have two options, do those steps only if you trust the source of the checkpoint. \n\t(1) In PyTorch 2.6, we changed the default value of the `weights_only` argument\n\tWeightsUnpickler error: Unsupported global: GLOBAL numpy.core.multiarray.scalar was not an allowed global by default.", "torch.load(path)")},
			no:  []string{raise("_pickle.UnpicklingError: pickle data was truncated", "torch.load(path)"), raise("_pickle.UnpicklingError: Weights only load failed.\n\tWeightsUnpickler error: Unsupported operand 60", "torch.load(path)")},
		},
		"torch-misuse": {
			yes: []string{
				raise("RuntimeError: Boolean value of Tensor with more than one value is ambiguous"), raise("RuntimeError: Expected target size [8, 10], got [8]"), raise("RuntimeError: you can only change requires_grad flags of leaf variables."), raise("RuntimeError: The following operation failed in the TorchScript interpreter."),
				raise("RuntimeError: No viable backend for scaled_dot_product_attention was found"), raise("RuntimeError: Some tensors share memory, this will lead to duplicate memory on disk"), raise("RuntimeError: linalg.inv: The diagonal element 3 is zero, the inversion could not be completed because the input matrix is singular."),
			},
			no: []string{raise("RuntimeError: the plan says no"), raise("RuntimeError: NCCL communicator was aborted on tensor 3"), raise("MyError: the tensor is odd")},
		},
		"torch-fork-cuda":     {yes: []string{raise("RuntimeError: CUDA initialized before forking")}, no: []string{raise("RuntimeError: a fork in the road")}},
		"collective-mismatch": {yes: []string{raise("RuntimeError: DDP expects same model across all ranks, but Rank 0 has 5 params, while rank 1 has inconsistent 4 params.")}, no: []string{raise("RuntimeError: the models differ")}},
		"python-misuse": {
			yes: []string{
				raise("_pickle.PicklingError: Can't pickle <function <lambda> at 0x7f>: attribute lookup <lambda> on __main__ failed"), raise("TypeError: cannot pickle '_thread.lock' object"), raise("StopIteration"),
				raise("RuntimeError: context has already been set"), raise("RuntimeError: \n        An attempt has been made to start a new process before the\n        current process has finished its bootstrapping phase."),
				raise("RuntimeError: dictionary changed size during iteration"), raise("RuntimeError: Event loop is closed"), raise("ValueError: trying to initialize the default process group twice!"),
				raise("cv2.error: OpenCV(4.8.0) /io/opencv/modules/imgproc/src/color.cpp:182: error: (-215:Assertion failed) !_src.empty() in function 'cvtColor'"),
				raise("re.error: unbalanced parenthesis at position 3"), raise("pydantic.errors.PydanticUserError: A non-annotated attribute was detected"),
			},
			no: []string{raise("RuntimeError: the loop is over"), "DeprecationWarning: There is no current event loop\n" + raise("KeyError: 'x'")},
		},
		"data-race": {
			yes: []string{"WARNING: DATA RACE\nWrite at 0x00c0000b4010 by goroutine 7:", "fatal error: concurrent map writes\n" + goes},
			no:  []string{"no data race was found"},
		},
		"library-type-error": {
			yes: []string{
				raise("numba.core.errors.TypingError: Failed in nopython mode pipeline (step: nopython frontend)"), raise("jax.errors.TracerArrayConversionError: The numpy.ndarray conversion method __array__() was called on traced array"), raise("torch._dynamo.exc.Unsupported: Graph break under GenericContextWrappingVariable"),
				raise("torch._inductor.exc.InductorError: LoweringException: AssertionError: target: aten.x"), raise("triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 280576, Hardware limit: 232448."), raise("numpy.exceptions.AxisError: axis 2 is out of order"),
				raise("sklearn.utils._param_validation.InvalidParameterError: The 'C' parameter of LogisticRegression must be a float"), raise("polars.exceptions.ColumnNotFoundError: priec"), raise("pandas.errors.IntCastingNaNError: Cannot convert non-finite values (NA or inf) to integer"),
				raise("flax.errors.ScopeParamNotFoundError: Could not find parameter named \"kernel\" in scope \"/Dense_0\"."), raise("xgboost.core.XGBoostError: label must be in [0,1] for logistic regression"), raise("pyspark.errors.exceptions.captured.AnalysisException: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `x` cannot be resolved."),
			},
			no: []string{raise("RuntimeError: the compilation is over"), raise("my.TypingErrors: x")},
		},
		"database-statement": {
			yes: []string{raise("sqlalchemy.exc.IntegrityError: (sqlite3.IntegrityError) UNIQUE constraint failed: runs.name"), raise("sqlite3.OperationalError: no such table: runs"), raise("psycopg2.errors.UndefinedTable: relation \"runs\" does not exist"), raise("sqlite3.ProgrammingError: Cannot operate on a closed database.")},
			no:  []string{raise("sqlite3.OperationalError: database is locked"), raise("psycopg2.OperationalError: connection to server at \"db01\" (10.0.0.9), port 5432 failed: Connection refused")},
		},
		"python-arithmetic": {yes: []string{raise("RuntimeWarning: divide by zero encountered in log")}, no: []string{"RuntimeWarning: divide by zero encountered in log"}},
		"tensorflow-argument": {
			yes: []string{raise("jax.errors.JaxRuntimeError: INVALID_ARGUMENT: Executable expected shape f32[3] for argument 0"), raise("jaxlib.xla_extension.XlaRuntimeError: UNIMPLEMENTED: DNN library is not found.")},
			no:  []string{raise("jaxlib.xla_extension.XlaRuntimeError: INTERNAL: the plan says no")},
		},
		"julia-error": {
			yes: []string{julia("FieldError: type Foo has no field `x`, available fields: `y`"), julia("UndefVarError: `x` not defined in `Main`"), julia("TypeError: non-boolean (Int64) used in boolean context"), julia("UndefKeywordError: keyword argument `a` not assigned")},
			no:  []string{julia("the data are bad")},
		},
		"panic-index": {
			yes: []string{"panic: close of closed channel\n" + goes, "panic: sync: negative WaitGroup counter\n" + goes, "thread 'main' panicked at src/main.rs:3:5:\nalready borrowed: BorrowMutError", "thread 'main' panicked at src/main.rs:3:5:\nattempt to multiply with overflow", "thread 'main' panicked at src/main.rs:3:5:\nnot yet implemented"},
			no:  []string{"panic: no data\n" + goes},
		},
		"program-error": {yes: []string{"ERROR STOP 9\n\nError termination. Backtrace:\n#0  0x7f8df76218c2 in ???"}, no: []string{"the error stops here"}},
		"script-error": {
			yes: []string{
				"Error in solve.default(a, b) : \n  non-conformable arguments\nCalls: solve\nExecution halted",
				"Error in f(x) : object 'y' not found\nCalls: f\nExecution halted", "Error in eval(expr, p) : could not find function \"fti\"\nExecution halted", "Error in x + y : non-numeric argument to binary operator\nExecution halted",
				"Error in `[.data.frame`(d, , \"z\") : undefined columns selected\nExecution halted", "Error using  * \nIncorrect dimensions for matrix multiplication. Check that the number of columns in the first matrix matches", "Unrecognized function or variable 'solvee'.", "error: 'foo' undefined\nerror: called from\n    run at line 3 column 1", "error: operator +: nonconformant arguments (op1 is 1x2, op2 is 1x3)",
				"Error in if (x > 1) print(x) : missing value where TRUE/FALSE needed\nExecution halted",
			},
			no: []string{"The following object is masked from 'package:stats'", "the matrix dimensions must agree, and they do"},
		},
		"java-exception": {
			yes: []string{"Exception in thread \"main\" java.lang.NullPointerException: Cannot invoke \"String.length()\" because \"s\" is null\n\tat Main.main(Main.java:5)", "Exception in thread \"main\" java.lang.ArrayIndexOutOfBoundsException: Index 3 out of bounds for length 3"},
			no:  []string{"Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space", "caught java.lang.NullPointerException, going on"},
		},
		"fortran-runtime": {yes: []string{"0: Subscript out of range for array a (solve.f90: 5)\n    subscript=11, lower bound=1, upper bound=10, dimension=1", "0: ALLOCATE: array already allocated", "Runtime Error: solve.f90, line 3: Subscript 1 of A (value 11) is out of range (1:10)\nProgram terminated by fatal error", "forrtl: severe (408): fort: (2): Subscript #1 of the array X has value 11 which is greater than the upper bound of 10"}, no: []string{"0: ALLOCATE: 80000 bytes requested; not enough memory"}},
		"library-misuse": {
			yes: []string{raise("petsc4py.PETSc.Error: error code 62\n[0] Vec.setSizes() at /build/petsc/src/vec/interface/vector.c:12\n[0] Invalid argument"), "[0]PETSC ERROR: --------------------- Error Message --------------------------------------------------------------\n[0]PETSC ERROR: Nonconforming object sizes\n[0]PETSC ERROR: Mat mat,Vec x: global dim 10 11"},
			no:  []string{raise("petsc4py.PETSc.Error: error code 76")},
		},
		"module-missing": {
			yes: []string{"Exception in thread \"main\" java.lang.NoClassDefFoundError: org/apache/spark/sql/SparkSession", "Can't locate Parallel/MPI.pm in @INC (you may need to install the Parallel::MPI module) (@INC entries checked: /etc/perl)", "Error: Cannot find module 'tensorflow'\nRequire stack:\n- /home/ana/job/a.js", "Error: Could not find or load main class Solver"},
			no:  []string{"Error: Cannot find the moon"},
		},
		"dependency-version": {yes: []string{raise("RuntimeError: Numpy is not available"), raise("RuntimeError: operator torchvision::nms does not exist"), raise("RuntimeError: Failed to import transformers.models.llama.modeling_llama because of the following error (look up to see its traceback):\ncannot import name 'x'")}, no: []string{"UserWarning: Failed to initialize NumPy: _ARRAY_API not found\n" + raise("KeyError: 'x'")}},
		"linker": {
			yes: []string{"Could not load library libcudnn_ops_infer.so.8.\nnvrtc: error: failed to open libnvrtc-builtins.so.12.1.", raise("OSError: cannot load library 'libsndfile.so': libsndfile.so: not found"), raise("RuntimeError: Distributed package doesn't have NCCL built in"), "CMake Error at CMakeLists.txt:3 (find_package):", raise("RuntimeError: \n        CUDA Setup failed despite GPU being available. Please run the following command to get more information:"), "Exception in thread \"main\" java.lang.UnsatisfiedLinkError: no hdf5_java in java.library.path: /usr/lib"},
			no:  []string{"libcudart is loaded", raise("RuntimeError: the package has NCCL built in")},
		},
		"torch-damaged":      {yes: []string{raise("RuntimeError: PytorchStreamReader failed locating file data/3: file not found"), raise("RuntimeError: unexpected EOF, expected 4096 more bytes. The file might be corrupted.")}, no: []string{raise("RuntimeError: the stream is shallow")}},
		"pickle-damaged":     {yes: []string{raise("EOFError: Ran out of input", "state = pickle.load(open(args.resume, 'rb'))")}, no: []string{raise("EOFError: EOF when reading a line", "resume = input()")}},
		"tensorflow-damaged": {yes: []string{raise("ValueError: DATA_LOSS: Error reading \"params/kernel\": CRC mismatch")}, no: []string{raise("ValueError: data are lost")}},
		"dcp-incomplete": {
			yes: []string{raise("ValueError: Unable to find latest file at /ckpt/latest, if trying to load latest checkpoint please ensure this file exists or pass an explicit checkpoint tag when loading a checkpoint."), raise("AssertionError_: Expected 8 of '*_optim_states.pt' under '/ckpt/global_step10' but found 7 files")},
			no:  []string{raise("OSError: [Errno 70] Communication error on send: '/ckpt/global_step900/mp_rank_03_model_states.pt'")},
		},
		"checkpoint-exception": {
			yes: []string{
				raise("RuntimeError: checkpoint /out/step100.bin is corrupt: checksum 1 is not 2"), "ERROR: restart file heat.rst is truncated: 1000 of 2000 bytes", raise("json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)", "state = json.load(open(os.path.join(resume, 'trainer_state.json')))"),
				"Fatal error:\nCannot read/write checkpoint; corrupt file, or maybe you are out of disk space?",
			},
			no: []string{raise("json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)", "cfg = json.load(f)"), "removing the truncated checkpoint\n" + raise("KeyError: 'x'")},
		},
		"loss-not-finite": {
			yes: []string{
				raise("FloatingPointError: invalid value (nan) encountered in jit(loss_fn)"), raise("AssertionError", "assert math.isfinite(loss.item())"), raise("jax.errors.JaxRuntimeError: nan generated by primitive: log."), raise("train.NonFiniteLossError: step 30"),
				"CRITICAL loss has been nan for 5 consecutive steps, aborting", "ERROR: the residual is NaN after 12 iterations", raise("RuntimeError: The total norm of order 2.0 for gradients from `parameters` is non-finite, so it cannot be clipped."),
				raise("ValueError: Expected parameter loc (Tensor of shape (32, 4)) of distribution Normal(loc: torch.Size([32, 4])) to satisfy the constraint Real(), but found invalid values:\ntensor([[nan, nan, nan, nan]])"),
			},
			no: []string{raise("ValueError: Input X contains NaN.\nLogisticRegression does not accept missing values encoded as NaN natively."), raise("AssertionError", "assert loss.shape == ()"), "WARNING step 4: non-finite loss inf, skipping the step\n" + raise("KeyError: 'x'")},
		},
		"solution-diverged": {
			yes: []string{
				"ERROR: Non-numeric pressure - simulation unstable (src/fix_nh.cpp:1045)\nLast command: run 1000", "ERROR on proc 0: Out of range atoms - cannot compute PPPM (src/KSPACE/pppm.cpp:1895)", "ERROR: Lost atoms: original 864 current 87 (src/thermo.cpp:439)",
				"-------------------------------------------------------\nFatal error:\nToo many LINCS warnings (1001)\nIf you know what you are doing you can adjust the lincs warning threshold in your mdp file\n-------------------------------------------------------",
				"ERROR: Atoms moving too fast; simulation has become unstable (1 atoms on patch 3 pe 0).", "Error in \"void CSolver::SetResidual_RMS()\":\n----\nSU2 has diverged (NaN detected).", "Error: Divergence detected in AMG solver: temperature", " ***ERROR: TOO MANY ATTEMPTS MADE FOR THIS INCREMENT",
				"FATAL from PE     0: NaN in input field of reproducing_EFP_sum(_2d), this indicates numerical instability", "Error at Node 0: floating point exception", "--> FOAM FATAL ERROR: \nMaximum number of iterations exceeded: 100\n\n    From function thermo::T\n    in file thermoI.H at line 66.\n\nFOAM aborting",
				"ABORT: time step too small: 1e-14",
				"Step 100: The total potential energy is nan, which is not finite. The LJ and electrostatic contributions to the energy are 0 and nan, respectively.",
			},
			no: []string{"ERROR: Lost atoms: original 4000 current 3999 (src/thermo.cpp:438)\nLast command: run 100", "Step 10, WARNING: 1 particle moved, the simulation is fine\n" + raise("KeyError: 'x'"), "time step too small, reducing CFL\n" + raise("KeyError: 'x'")},
		},
		"c-assertion":   {yes: []string{"Verification failed: (mesh != NULL) is false:\n --> no mesh", "Exception in thread \"main\" java.lang.AssertionError: n > 0"}, no: []string{"the verification failed to start"}},
		"shell-syntax":  {yes: []string{"run.sh: line 3: 08: value too great for base\nrun.sh: line 4: 3 +: syntax error: operand expected", "run.sh: line 12: unexpected EOF while looking for matching `\"'"}[1:], no: []string{"unmatched rows: 3"}},
		"script-syntax": {yes: []string{"Error: unexpected symbol in \"x y\"\nExecution halted", "syntax error at run.pl line 3, near \"my \"\nExecution of run.pl aborted due to compilation errors.", "awk: cmd. line:1: {print $1\nawk: cmd. line:1:          ^ unexpected newline or end of string\nawk: line 1: syntax error at or near end of line", "Invalid expression. Check for missing multiplication operator, missing or unbalanced delimiters, or other syntax error."}, no: []string{"jq: error: syntax error, unexpected $end", "warning: syntax error at line 3 of the config was ignored"}},
		"child-failed":  {yes: []string{raise("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"), raise("ray.train.base_trainer.TrainingFailedError: The Ray Train run failed.")}, no: []string{raise("RuntimeError: the engine is cold")}},
		"permission-denied": {
			yes: []string{"forrtl: severe (9): permission to access file denied, unit 10, file /data/x.dat", "Exception in thread \"main\" java.nio.file.AccessDeniedException: /data/x", "At line 2 of file read.f90 (unit = 10)\nFortran runtime error: Cannot open file 'grid.dat': Permission denied", what("std::filesystem::__cxx11::filesystem_error", "filesystem error: cannot create directories: Permission denied [/results]")},
			no:  []string{"the permission is given"},
		},
		"http-denied": {yes: []string{raise("botocore.exceptions.NoCredentialsError: Unable to locate credentials"), raise("wandb.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])"), raise("OSError: You are trying to access a gated repo.\nMake sure to have access to it at https://huggingface.co/m/l."), raise("sqlalchemy.exc.OperationalError: (psycopg2.OperationalError) FATAL:  password authentication failed for user \"ana\"")}, no: []string{raise("RuntimeError: the token is long")}},
		"missing-output-directory": {
			yes: []string{raise("OSError: [Errno 2] Unable to synchronously create file (unable to open file: name = '/out/x.h5', errno = 2, error message = 'No such file or directory', flags = 13, o_flags = 242)"), "ERROR: cannot open /out/heat.rst for writing", what("std::runtime_error", "could not open output file results/u.vtk for writing"), "cp: cannot create regular file '/out/x/a.bin': No such file or directory", raise("FileNotFoundError: [Errno 2] No such file or directory: '/out/train.log'", "return open_func(self.baseFilename, self.mode,")},
			no:  []string{"ERROR: cannot open /data/heat.rst for reading", "ERROR: cannot write restart.10: No space left on device"},
		},
		"output-is-directory": {yes: []string{raise("IsADirectoryError: [Errno 21] Is a directory: '/out/model.onnx'", "torch.onnx.export(model, dummy, args.out)"), raise("IsADirectoryError: [Errno 21] Is a directory: '/out'", "with open(path, \"w\") as f:")}, no: []string{raise("IsADirectoryError: [Errno 21] Is a directory: '/data'", "open(path)")}},
		"output-exists":       {yes: []string{"At line 2 of file w.f90 (unit = 10)\nFortran runtime error: File 'out.dat' already exists", "forrtl: severe (10): cannot overwrite existing file, unit 10, file /out/x.dat", raise("zarr.errors.ContainsGroupError: path '' contains a group"), raise("ValueError: Destination /ckpt/100 already exists."), "Exception in thread \"main\" org.apache.hadoop.mapred.FileAlreadyExistsException: Output directory hdfs://nn/out already exists"}, no: []string{raise("ValueError: a model of that name already exists")}},
	} {
		s := samples[signature]
		s.yes, s.no = append(s.yes, more.yes...), append(s.no, more.no...)
		samples[signature] = s
	}
}
