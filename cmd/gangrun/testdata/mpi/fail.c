// fail MODE [RANK [WHEN]]: a gang in which rank RANK misbehaves as MODE says,
// after WHEN barriers (0) that all have passed, while the others wait for it in
// a barrier. Modes that test the gang as a whole need no RANK.
//
// What misbehaves says nothing by itself: a launcher must know from how the
// process ended. Before MPI_Init and without it the rank is the environment's
// RANK. The exit code is 2 for wrong arguments and 9 for a check that failed.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FAILED = 9, USAGE = 2 };

static int rank, size;

static void usage(const char *why) {
	fprintf(stderr, "%s\nusage: fail MODE [RANK [WHEN]]\n", why);
	exit(USAGE);
}

// check ends the gang unless what must be so is so.
static void check(int so, const char *what) {
	if (so)
		return;
	fprintf(stderr, "rank %d of %d: wrong: %s\n", rank, size, what);
	MPI_Abort(MPI_COMM_WORLD, FAILED);
	_exit(FAILED);
}

static int number(const char *text) {
	char *end;
	errno = 0;
	long n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < 0 || n > INT_MAX)
		usage("not a number");
	return (int)n;
}

static int env_number(const char *name) {
	const char *text = getenv(name);
	if (!text) {
		fprintf(stderr, "%s is not set\n", name);
		exit(USAGE);
	}
	return number(text);
}

static void no_core(void) {
	struct rlimit none = {0, 0};
	setrlimit(RLIMIT_CORE, &none);
}

static void hang(void) {
	for (;;)
		pause();
}

// deep uses up the stack. Its result depends on every frame, so that no
// compiler makes a loop of it.
static unsigned deep(unsigned n) {
	volatile char frame[4096];
	frame[n % sizeof frame] = (char)n;
	if (n == UINT_MAX)
		return 0;
	return deep(n + 1) + (unsigned)frame[n % sizeof frame];
}

// stray leaves a child behind that holds no stream and ignores SIGTERM, once
// it does.
static void stray(int own_session) {
	int ready[2];
	check(pipe2(ready, O_CLOEXEC) == 0, "pipe");
	pid_t pid = fork();
	check(pid >= 0, "fork");
	if (pid == 0) {
		signal(SIGTERM, SIG_IGN);
		signal(SIGHUP, SIG_IGN);
		if (own_session && setsid() < 0)
			_exit(FAILED);
		if (write(ready[1], "", 1) != 1)
			_exit(FAILED);
		long limit = sysconf(_SC_OPEN_MAX);
		for (int fd = 0; fd < (limit > 4096 ? 4096 : limit); fd++)
			close(fd);
		for (;;)
			sleep(1000);
	}
	char byte;
	close(ready[1]);
	check(read(ready[0], &byte, 1) == 1, "the child that is left behind died");
	close(ready[0]);
}

// before_init does what the modes do that misbehave before MPI_Init.
static void before_init(const char *mode) {
	if (!strcmp(mode, "exit5-preinit"))
		exit(5);
	if (!strcmp(mode, "exit0-preinit"))
		exit(0);
	if (!strcmp(mode, "hang-preinit"))
		hang();
}

// misbehave returns for the modes whose misbehaviour is not in this place.
static void misbehave(const char *mode) {
	volatile int zero = 0;
	if (!strcmp(mode, "segv")) {
		*(volatile int *)(size_t)zero = 1;
	} else if (!strcmp(mode, "sigkill")) {
		kill(getpid(), SIGKILL);
		hang(); // until it arrives
	} else if (!strcmp(mode, "abort")) {
		abort();
	} else if (!strcmp(mode, "exit3")) {
		exit(3);
	} else if (!strcmp(mode, "exit0-nofinalize")) {
		exit(0);
	} else if (!strcmp(mode, "mpiabort7")) {
		MPI_Abort(MPI_COMM_WORLD, 7);
	} else if (!strcmp(mode, "mpiabort256")) {
		MPI_Abort(MPI_COMM_WORLD, 256);
	} else if (!strcmp(mode, "fpe")) {
		zero = INT_MAX / zero;
		raise(SIGFPE); // processors on which dividing by zero is no fault
	} else if (!strcmp(mode, "stackoverflow")) {
		printf("%u\n", deep((unsigned)zero));
	} else if (!strcmp(mode, "sigstop")) {
		raise(SIGSTOP);
	} else if (!strcmp(mode, "hang-barrier")) {
		hang();
	} else if (!strcmp(mode, "fork-child")) {
		stray(0);
	} else if (!strcmp(mode, "setsid-child")) {
		stray(1);
	}
}

// truncate has the bad rank receive a message that is longer than its buffer.
static void truncate_at(int bad) {
	int data[64] = {0};
	if (rank == (bad + 1) % size)
		MPI_Send(data, 64, MPI_INT, bad, 0, MPI_COMM_WORLD);
	if (rank == bad)
		MPI_Recv(data, 1, MPI_INT, (bad + 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// allreduce checks sums over the gang, of one number and of many.
static void allreduce(void) {
	enum { MANY = 1 << 17 };
	long mine = rank + 1, sum = 0, want = (long)size * (size + 1) / 2;
	MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	check(sum == want, "the sum of one number");
	double *in = malloc(MANY * sizeof *in), *out = malloc(MANY * sizeof *out);
	check(in && out, "memory");
	for (int i = 0; i < MANY; i++)
		in[i] = (double)mine * (i % 7);
	MPI_Allreduce(in, out, MANY, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < MANY; i++)
		check(out[i] == (double)want * (i % 7), "a sum of many numbers");
	free(in);
	free(out);
	printf("rank %d of %d: sum %ld\n", rank, size, sum);
}

// splithost splits the gang by host. The ranks of a part must be as many as
// LOCAL_WORLD_SIZE says, and share memory.
static void splithost(void) {
	MPI_Comm host;
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
	int local, locals;
	MPI_Comm_rank(host, &local);
	MPI_Comm_size(host, &locals);
	check(locals == env_number("LOCAL_WORLD_SIZE"), "the ranks on this host are not LOCAL_WORLD_SIZE");

	int *mine;
	MPI_Win win;
	MPI_Win_allocate_shared(sizeof *mine, sizeof *mine, MPI_INFO_NULL, host, &mine, &win);
	MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
	*mine = rank;
	MPI_Win_sync(win);
	MPI_Barrier(host);
	MPI_Win_sync(win);
	char line[4096];
	int n = snprintf(line, sizeof line, "rank %d of %d: host of", rank, size);
	for (int i = 0; i < locals; i++) {
		MPI_Aint bytes;
		int unit, *theirs;
		MPI_Win_shared_query(win, i, &bytes, &unit, &theirs);
		n += snprintf(line + n, sizeof line - (size_t)n, " %d", *theirs);
		check((size_t)n < sizeof line, "too many ranks for a line");
	}
	printf("%s\n", line);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	MPI_Comm_free(&host);
}

// names has rank 0 publish a name that all others find.
static void names(void) {
	const char *port = "a-port"; // made up: not every transport has real ones
	char found[MPI_MAX_PORT_NAME] = "";
	if (rank == 0)
		MPI_Publish_name("a-name", MPI_INFO_NULL, port);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Lookup_name("a-name", MPI_INFO_NULL, found);
	check(!strcmp(port, found), "the port of a published name");
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		MPI_Unpublish_name("a-name", MPI_INFO_NULL, port);
	printf("rank %d of %d\n", rank, size);
}

int main(int argc, char **argv) {
	static const char *const modes[] = {"segv", "sigkill", "abort", "exit3", "exit0-nofinalize", "mpiabort7", "mpiabort256",
		"exit5-preinit", "exit0-preinit", "fpe", "stackoverflow", "sigstop", "hang-preinit", "hang-barrier",
		"exit42-postfinalize", "truncate", "fork-child", "setsid-child", "hello", "allreduce", "splithost", "names", NULL};
	if (argc < 2 || argc > 4)
		usage("one to three arguments");
	// A rank that waits for another uses all the CPU time that it gets.
	if (nice(5) == -1)
		return USAGE;
	const char *mode = argv[1];
	int known = 0;
	for (int i = 0; modes[i]; i++)
		known |= !strcmp(mode, modes[i]);
	if (!known)
		usage("no such mode");
	int bad = argc > 2 ? number(argv[2]) : -1, when = argc > 3 ? number(argv[3]) : 0;

	no_core();
	if (bad >= 0 && env_number("RANK") == bad)
		before_init(mode);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int i = 0; i < when; i++)
		MPI_Barrier(MPI_COMM_WORLD);

	if (!strcmp(mode, "hello"))
		printf("rank %d of %d\n", rank, size);
	else if (!strcmp(mode, "allreduce"))
		allreduce();
	else if (!strcmp(mode, "splithost"))
		splithost();
	else if (!strcmp(mode, "names"))
		names();
	else if (!strcmp(mode, "hang-barrier"))
		printf("rank %d of %d waits\n", rank, size);
	fflush(stdout);
	if (!strcmp(mode, "truncate"))
		truncate_at(bad);
	else if (rank == bad)
		misbehave(mode);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return !strcmp(mode, "exit42-postfinalize") && rank == bad ? 42 : 0;
}
