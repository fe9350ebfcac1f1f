// Package reason finds the reason that an error message gives: the error of the operating system, in the words, names
// and numbers in which the runtimes of all languages show it.
package reason

import (
	"strings"
	"sync"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// fault is one kind of reason.
type fault struct {
	signature string // of the rule that says what the reason means
	numbers   []int  // errno on Linux
	// names are the names of the error codes, and of the kinds of errors in Rust, Java and other languages. They occur
	// in messages as whole words.
	names []string
	// words are the messages of strerror, and those of libraries that mean the same, in lower case.
	words []string
}

// faults has the reasons that suffice to tell the category. If a message has several, the first one in faults counts.
var faults = []fault{
	{"no-space", []int{28}, []string{"ENOSPC", "StorageFull"}, []string{"no space left on device", "no space left on disk", "there is not enough space on the disk", "disk full"}},
	{"disk-quota", []int{122}, []string{"EDQUOT", "QuotaExceeded", "FilesystemQuotaExceeded"}, []string{"disk quota exceeded", "quota exceeded"}},
	{"io-error", []int{5}, []string{"EIO"}, []string{"input/output error", "i/o error (eio)"}},
	{"input-output-error", []int{121, 70}, []string{"EREMOTEIO", "ECOMM"}, []string{"remote i/o error", "communication error on send"}},
	{"stale-handle", []int{116}, []string{"ESTALE", "StaleNetworkFileHandle"}, []string{"stale file handle", "stale nfs file handle"}},
	{"file-system-gone", []int{107, 108}, []string{"ENOTCONN", "ESHUTDOWN"}, []string{"transport endpoint is not connected", "cannot send after transport endpoint shutdown"}},
	{"bad-message", []int{74, 117}, []string{"EBADMSG", "EUCLEAN"}, []string{"structure needs cleaning"}},
	{"file-lock", []int{37}, []string{"ENOLCK"}, []string{"no locks available"}},
	{"read-only", []int{30}, []string{"EROFS", "ReadOnlyFilesystem", "ReadOnlyFileSystemException"}, []string{"read-only file system", "write to readonly file", "write to file opened for read"}},
	{"file-size-limit", []int{27}, []string{"EFBIG", "FileTooLarge"}, []string{"file too large"}},
	{"open-files-limit", []int{23, 24}, []string{"EMFILE", "ENFILE"}, []string{"too many open files"}},
	{"permission-denied", []int{1, 13}, []string{"EACCES", "EACCESS", "EPERM", "PermissionDenied", "AccessDeniedException", "AccessControlException"}, []string{"permission denied", "operation not permitted", "permission to access file denied", "access is denied"}},
	{"address-in-use", []int{98}, []string{"EADDRINUSE", "AddrInUse"}, []string{"address already in use", "address in use"}},
	{"unreachable", []int{99, 101, 113}, []string{"EADDRNOTAVAIL", "ENETUNREACH", "EHOSTUNREACH", "HostUnreachable", "NetworkUnreachable", "AddrNotAvailable"}, []string{"no route to host", "network is unreachable", "cannot assign requested address"}},
	{"name-resolution", nil, []string{"EAI_NONAME", "EAI_AGAIN", "ENOTFOUND", "UnknownHostException"}, []string{"name or service not known", "temporary failure in name resolution", "no such host"}},
	{"connection-refused", []int{111}, []string{"ECONNREFUSED", "ConnectionRefused"}, []string{"connection refused"}},
	{"peer-closed", []int{32, 104}, []string{"ECONNRESET", "EPIPE", "ConnectionReset", "ConnectionAborted", "BrokenPipe"}, []string{"connection reset by peer", "broken pipe"}},
	{"process-limit", []int{11}, []string{"EAGAIN", "WouldBlock"}, []string{"resource temporarily unavailable"}},
	{"native-out-of-memory", []int{12}, []string{"ENOMEM"}, []string{"cannot allocate memory", "not enough space (enomem)"}},
	{"output-exists", []int{17}, []string{"EEXIST", "AlreadyExists", "FileAlreadyExistsException"}, []string{"file exists", "file already exists"}},
	{"not-a-file", []int{21}, []string{"EISDIR", "IsADirectory"}, []string{"is a directory"}},
	{"missing-file", []int{2, 20}, []string{"ENOENT", "ENOTDIR", "NotADirectory", "NoSuchFileException", "FileNotFoundException"}, []string{"no such file or directory", "not a directory", "directory does not exist", "no such directory", "path does not exist"}},
}

var (
	// number matches the number of an error, where the message shows that the operating system has returned it.
	number = textmatch.New(`(?i)(?:\b|_)errno\]?\b\W{0,6}(?:is |code )?(\d{1,3})\b|\[errno (\d{1,3})\]|\bos error (\d{1,3})\b|\bcode: -?(\d{1,3}), (?:kind|name):|\bios(?:tat)?\b\W{0,4}(\d{1,3})\b|\b(?:rc|ret|err|error|error code|retval|returned|result|status)\W{1,3}-(\d{1,3})(?:[^\d.]|$)`)
	// word matches texts that may be names of faults.
	word = textmatch.New(`\bE[A-Z]{2,14}\b|\bEAI_[A-Z]+\b|\b(?:[A-Z][a-z]+){2,5}\b`)
	// short matches messages of a write that stored less than it was given.
	short = textmatch.New(`(?i)\b\d+ requested and \d+ written\b|\bshort write\b|\b(?:wrote|written) (?:only )?\d+ (?:\w+ )?(?:out )?of \d+\b|\bonly \d+ (?:\w+ )?(?:out )?of \d+ (?:\w+ )?(?:were |was )?written\b`)
	// memory matches the codes with which Fortran's ALLOCATE and others say that there is not enough memory.
	memory = textmatch.New(`(?i)\ballocat\w*\b.{0,80}\b(?:i?stat|ios|ierr|status|error|code)\W{1,3}(?:41|179|5014)\b|\bstd::bad_alloc\b`)
	// dials matches messages of the libraries of Go and others which say that a server cannot be reached.
	dials = textmatch.New(`(?i)\bdial (?:tcp|udp)\b|\blookup \S+(?: on \S+)?: |\btls handshake time-?out\b|\bi/o timeout\b|\bconnection timed out\b|\b(?:connect|request|read) timed out\b`)
	// netCDF matches messages of the library NetCDF about a file that is not what the program expects.
	netCDF = textmatch.New(`NetCDF: (?:Unknown file format|Variable not found|Attribute not found|Invalid dimension|Name not found|Not a valid data type|Index exceeds dimension bound|Start\+count exceeds|Edge\+start exceeds|Invalid argument|Can't open HDF5)`)
	// mpiCode matches the name of an MPI error.
	mpiCode = textmatch.New(`\bMPI_ERR_[A-Z_]+\b`)
	// executes matches messages about a program that is to be started.
	executes = textmatch.New(`(?i)\b(?:execv\w*|execl\w*|posix_spawnp?|fork/exec|exec|spawn(?:ing)?|launch(?:ing)? (?:the )?(?:program|executable|command))\b`)
	// writes matches messages about a file that is written.
	writes = textmatch.New(`(?i)\b(?:writ(?:e|es|ing|ten)|sav(?:e|es|ing)|creat(?:e|es|ing)|mk_?dirs?|export\w*|outputs?|stor(?:e|ing)|dump(?:ing)?|flush\w*|append\w*|archiv\w+|publish\w*|renam\w+|(?:nf90|nc|nfmpi|ncmpi)_create)\b|_create\b|(?:^|[\s"'/(=])(?:outputs?|results?|res|out|published|archive|figures|plots|reports?|snapshots?)/[^\s"']|for (?:output|writing)`)
	// reads matches messages about a file that is read.
	reads = textmatch.New(`(?i)\b(?:read(?:s|ing)?|load(?:s|ing)?|pars(?:e|ing)|import\w*|inputs?|for reading)\b|\b(?:rm|ls|du|stat|cat): `)
)

// index returns the tables in which reasons are looked up.
var index = sync.OnceValue(func() (x struct {
	words   *textmatch.Index
	names   map[string]int
	numbers map[int]int
}) {
	x.words, x.names, x.numbers = &textmatch.Index{}, map[string]int{}, map[int]int{}
	for i, f := range faults {
		for _, w := range f.words {
			x.words.Add(w, i)
		}
		for _, n := range f.names {
			x.names[n] = i
		}
		for _, n := range f.numbers {
			x.numbers[n] = i
		}
	}
	return x
})

// Of returns the signature of the rule for the reason that an error message gives. It returns an empty text if the
// message gives no known reason.
func Of(text string) string {
	x, best := index(), len(faults)
	for _, i := range x.words.Find(text, nil) {
		best = min(best, i)
	}
	for rest := text; best == len(faults); {
		at := word.FindStringIndex(rest)
		if at == nil {
			break
		}
		if i, ok := x.names[rest[at[0]:at[1]]]; ok {
			best = i
		}
		rest = rest[at[1]:]
	}
	if m := number.FindStringSubmatch(text); m != nil && best == len(faults) {
		if i, ok := x.numbers[logtext.Number(strings.Join(m[1:], ""))]; ok {
			best = i
		}
	}
	switch {
	case best == len(faults) && short.MatchString(text):
		return "no-space"
	case best == len(faults) && memory.MatchString(text):
		return "native-out-of-memory"
	case best == len(faults) && dials.MatchString(text):
		return "connect-failed"
	case best == len(faults) && netCDF.MatchString(text):
		return "bad-format"
	case best == len(faults) && mpiCode.MatchString(text):
		return "mpi-call"
	case best == len(faults):
		return ""
	}
	signature := faults[best].signature
	if signature == "file-system-gone" && !strings.ContainsAny(text, "/[") { // a socket: the message has no path
		return "peer-closed"
	}
	if signature == "missing-file" && executes.MatchString(text) {
		return "command-not-found"
	}
	if (signature == "missing-file" || signature == "not-a-file") && writes.MatchString(text) && !reads.MatchString(text) {
		return map[string]string{"missing-file": "missing-output-directory", "not-a-file": "output-is-directory"}[signature]
	}
	return signature
}
