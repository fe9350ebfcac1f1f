package ssh

import (
	"fmt"
	"strings"

	"github.com/gangrun/gangrun/internal/remote/shell"
)

// places is the number of directories in which a program may be.
const places = 5

// The scripts below are constant. Their arguments are hexadecimal digits, numbers and plain names. They contain no
// single quote, exclamation mark or backslash, and are joined to one line. So every login shell (sh, csh, fish) passes
// them to /bin/sh unchanged. They use POSIX shell and test -O.

// preludeScript defines the shell functions of installScript.
//
//   - D sets $d to the directory of place $1, or to "" if the host has no such place.
//   - V is true if a file has the hash of the program. It uses openssl, which takes a third of
//     the time of sha256sum, then sha256sum, then the program's own self-check.
//   - T is true if the complete program is there, as a file of the user, in a directory of the
//     user that nobody else can enter. Otherwise it sets w to "damaged" if there is a damaged one.
//
// Reading all of the program takes at least 50 ms of a core, which is too long for each start of
// 16 hosts that share two cores. So T writes the size, inode and change time of a complete
// program beside it, and reads the program again only if they differ or are not known. It does
// not notice what a faulty disk changes without them.
//
// T also removes the files of installations that nobody has written to for 10 minutes. No
// installation takes that long (startLimit).
const preludeScript = `
U=$(umask); A=${LC_ALL+set}; B=${LC_ALL-};
LC_ALL=C; export LC_ALL; umask 077;
D() {
	d=;
	case $1 in
	0) d=${XDG_CACHE_HOME:+$XDG_CACHE_HOME/gangrun};;
	1) d=${HOME:+$HOME/.cache/gangrun};;
	2) d=${XDG_RUNTIME_DIR:+$XDG_RUNTIME_DIR/gangrun};;
	3) d=/tmp/gangrun-$(id -u);;
	4) d=/dev/shm/gangrun-$(id -u);;
	esac;
	case $d in /*) ;; *) d=;; esac;
	m=$d/$H; f=$m/$N;
};
V() {
	g=;
	if command -v openssl >/dev/null 2>&1; then
		g=$(openssl dgst -sha256 -r <"$1" 2>/dev/null); g=${g%% *};
	fi;
	if [ -n "$g" ]; then :;
	elif command -v sha256sum >/dev/null 2>&1; then
		g=$(sha256sum <"$1"); g=${g%% *};
	elif g=$("$1" self-check "$H" 2>&1); then g=$H; fi;
	[ "$g" = "$H" ];
};
Z() { z=$(TZ=UTC0 stat -L -c "%s %i %z" "$f" 2>/dev/null); };
M() { if [ -n "$z" ]; then { echo "$z" >"$m/whole"; } 2>/dev/null; fi; return 0; };
T() {
	w=;
	[ -n "$d" ] && [ -x "$f" ] && [ -f "$f" ] && [ -O "$d" ] && [ -O "$m" ] && [ -O "$f" ] || return 1;
	case $(ls -ld "$d/") in drwx------*) ;; *) return 1;; esac;
	Z; g=; { read -r g <"$m/whole"; } 2>/dev/null;
	if [ -n "$z" ] && [ "$z" = "$g" ]; then :;
	elif [ "$(wc -c <"$f")" -eq "$S" ] && V "$f"; then M;
	else w=damaged; return 1; fi;
	for v in "$m"/.[0-9a-f]*; do
		if [ -e "$v" ]; then find "$m" -name ".*" -mmin +10 -exec rm -rf {} + 2>/dev/null; break; fi;
	done;
	touch -c "$m" 2>/dev/null; return 0;
};
`

// takeScript BYTES copies that many bytes of its input to its output, in pieces. It confirms each piece on descriptor
// 3.
var takeScript = fmt.Sprintf(`
n=$1;
while [ $n -gt 0 ]; do
	head -c $(( n < %[1]d ? n : %[1]d )) || exit 1;
	n=$(( n - %[1]d )); echo "@gangrun 0 took" >&3;
done
`, pieceSize)

// installScript HASH NAME SIZE NONCE FROM TAKESCRIPT [ARG...] installs the program if the host
// lacks it, marks it as used and, if there are arguments, runs it with them. The program gets the
// umask and the LC_ALL of the session, because the files of the job are made with that umask. All
// of this is one session, because each session costs both sides as much as some megabytes do.
//
//  1. It looks for the program in all places. If the program is there, it runs it.
//  2. It takes the first place, beginning with FROM, in which a program runs. To find out, it
//     writes a file with an empty line, which is a script, and runs it.
//  3. It asks for the program in the first form that the host can unpack. It reads a line with
//     the number of bytes and then that many bytes; what follows is input of the program.
//     "head -c" is not in POSIX, but every Linux has it, and it reads no byte too many. There is
//     a time limit if the host has timeout, because the host may not notice the end of a
//     connection for hours.
//  4. It checks the hash, runs the self-check, and only then gives the file its name. Running the
//     program without the check of the hash would save a process, but would run a file that
//     nobody has checked.
//  5. It removes programs that were not started for 30 days and do not run. It checks that again
//     after renaming them, when nobody can start them any more.
const installScript = `
H=$1; N=$2; S=$3; X=$4; K=$5; Q=$6; shift 6;
` + preludeScript + `
C() {
	if [ $i -gt 2 ] && [ -L "$d" ]; then echo "it is a symbolic link"; return 1; fi;
	mkdir -p "$d" || return 1;
	if [ -O "$d" ]; then :; else echo "it belongs to somebody else"; return 1; fi;
	chmod 700 "$d" && mkdir -p "$m" && chmod 700 "$m" || return 1;
	if echo | cat >"$t" && chmod 755 "$t"; then :; else G; return 1; fi;
	if "$t"; then :; else G; echo "no program runs from there: noexec"; return 1; fi;
};
G() { rm -f "$t"; rmdir "$m" 2>/dev/null; };
Y() {
	echo "@gangrun $i there $f"; umask $U;
	if [ -n "$A" ]; then LC_ALL=$B; else unset LC_ALL; fi;
	if [ $# -gt 0 ]; then exec "$f" "$@" 3>&-; fi; exit 0;
};
if [ $K -eq 0 ]; then
	for i in 0 1 2 3 4; do
		D $i; if T; then Y "$@"; fi;
		if [ -n "$w" ]; then echo "@gangrun $i damaged $f"; fi;
	done;
fi;
for i in 0 1 2 3 4 5; do
	if [ $i -lt $K ]; then continue; fi;
	if [ $i -eq 5 ]; then echo "@gangrun 5 none"; exit 0; fi;
	D $i;
	if [ -z "$d" ]; then continue; fi;
	t=$m/.$X;
	if r=$(C 2>&1); then break; fi;
	echo "@gangrun $i no $d"; echo "$r";
done;
z=plain; u=cat;
if command -v zstd >/dev/null 2>&1; then z=zstd; u="zstd -dcq";
elif command -v gzip >/dev/null 2>&1; then z=gzip; u="gzip -dc"; fi;
echo "@gangrun $i can $z"; exec 3>&1; if read -r n; then :; else G; exit 1; fi;
L=;
if timeout 9 true >/dev/null 2>&1; then L="timeout 150"; fi;
W() { $L /bin/sh -c "$Q" gangrun "$n" | $u >"$t"; };
if r=$(W 2>&1); then :; else
	G; echo "@gangrun $i no $d"; echo "$r"; exit 0;
fi;
if V "$t"; then :; else
	G; echo "@gangrun $i bad $d"; echo "$g"; exit 0;
fi;
if r=$("$t" self-check 2>&1); then :; else
	c=$?; G;
	echo "@gangrun $i dead $d"; echo "code $c"; echo "$r"; exit 0;
fi;
if [ -d "$f" ]; then rm -rf "$f"; fi;
if r=$(mv -f "$t" "$f" 2>&1); then :; else
	rm -f "$t"; echo "@gangrun $i no $d"; echo "$r"; exit 0;
fi;
Z; M;
R() { p=$(cd "$1" && pwd -P) || return 0; case $(ls -l /proc/[0-9]*/exe 2>/dev/null) in *"> $p/"*) return 0;; esac; return 1; };
for v in "$d"/*; do
	h=${v##*/}; o=$d/.old.$h.$X;
	if [ ${#h} -ne 64 ] || [ "$h" = "$H" ] || [ -L "$v" ]; then continue; fi;
	if [ -z "$(find "$v" -prune -type d -mtime +30 2>/dev/null)" ]; then continue; fi;
	if R "$v"; then continue; fi;
	mv "$v" "$o" 2>/dev/null || continue;
	if R "$o"; then mv "$o" "$v" 2>/dev/null; else rm -rf "$o"; fi;
done;
for v in "$d"/.[0-9a-z]* "$d"/*/.[0-9a-f]*; do
	if [ -e "$v" ]; then find "$d" -mindepth 1 -maxdepth 2 -name ".*" -mmin +10 -exec rm -rf {} + 2>/dev/null; break; fi;
done;
Y "$@"
`

// oneLine returns a script as one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// script returns the command that runs a script with /bin/sh and arguments.
func script(text string, args ...string) string {
	var b strings.Builder
	b.WriteString("exec /bin/sh -c '")
	b.WriteString(oneLine(text))
	b.WriteString("' gangrun")
	for _, a := range args {
		b.WriteString(" " + shell.Quote(a))
	}
	return b.String()
}

// runLine returns the command that runs an installed program with arguments.
func runLine(path string, args ...string) string {
	var b strings.Builder
	b.WriteString("exec " + shell.Quote(path))
	for _, a := range args {
		b.WriteString(" " + shell.Quote(a))
	}
	return b.String()
}
