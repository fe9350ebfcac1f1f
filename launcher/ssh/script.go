package ssh

import (
	"fmt"
	"strings"
)

// places is how many directories a program may be in.
const places = 5

// The scripts below are fixed: what differs comes as arguments, and is
// hexadecimal, a number or a plain name. They hold no single quote, no
// exclamation mark and no backslash, and are made one line, so that every login
// shell (sh, csh, fish) passes them to /bin/sh as they are. They use what POSIX
// and every /bin/sh has, and test -O.

// preludeScript sets D, which makes $d the directory of place $1 ("" where it
// has none), V, which is true where a file has the program's hash, by openssl, which
// takes a third of the time, by sha256sum, or by what the file says of itself, and T, which is true where the program is there:
// the user's own file, whole, in the user's own directory that nobody else can enter.
// Else w says whether it is there and damaged. To read all of it takes 50 ms of a
// core and more: too long for every start of 16 hosts that share two cores. So its
// size, inode and time of change are kept beside it, once it was found whole, and it
// is read again only where they differ or cannot be told. What a disk changes by
// itself, with no trace of it there, is not seen.
// Pieces of installations that were not written to for 10 minutes are removed where
// they are seen: none takes as long (startLimit).
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

// takeScript: BYTES copies so many of its input, in pieces, and reports each on
// descriptor 3.
var takeScript = fmt.Sprintf(`
n=$1;
while [ $n -gt 0 ]; do
	head -c $(( n < %[1]d ? n : %[1]d )) || exit 1;
	n=$(( n - %[1]d )); echo "@gangrun 0 took" >&3;
done
`, pieceSize)

// installScript: HASH NAME SIZE NONCE FROM TAKESCRIPT [ARG...] puts the program on the
// host where it is missing, marks it as used, and runs it with the arguments, if there are
// any, and with the umask and the LC_ALL that the session began with: the job's files are
// made with that umask. All this is one session, since each session costs both sides as
// much as some megabytes do. Where the program is missing, the first place from FROM on is taken in which a program runs: a file that holds an empty line,
// which is a script, is written and run there. Then the program is asked for, in the
// first form for which the host has what unpacks it. What comes is a line with the number of
// bytes, and as many bytes: behind them comes what is for the program. "head -c", which
// POSIX lacks and every Linux has, takes no byte too many. There is a time limit where the
// host can set one: the end of a connection may not be seen there for hours. The hash is
// checked and the program is run before it gets its name, in place of whatever has that;
// both at once would be one process less, but then something unchecked would run where
// there is something to check it with. Then old programs go: those not started for 30 days and
// not running, which is looked at again under another name, under which nobody can
// start them.
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

// oneLine is a script without its line ends.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// script is the line that has /bin/sh run a script with arguments.
func script(text string, args ...string) string {
	var b strings.Builder
	b.WriteString("exec /bin/sh -c '")
	b.WriteString(oneLine(text))
	b.WriteString("' gangrun")
	for _, a := range args {
		b.WriteString(" " + quote(a))
	}
	return b.String()
}
