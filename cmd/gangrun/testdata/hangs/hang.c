// hang MODE RANK FIFO: ranks work ten steps together; then rank RANK, or all if it is -1, hangs.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *mode, *fifo;
static int feed[2];

static void loop(void) {
	for (volatile unsigned n = 0;; n++) {
	}
}

static void lock_twice(void) {
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&m);
	pthread_mutex_lock(&m);
}

static void read_fifo(void) {
	char c;
	int fd = open(fifo, O_RDONLY);
	if (fd < 0 || read(fd, &c, 1) < 0)
		perror(fifo);
}

// The parent of a vfork waits in the kernel, in state D, until the child executes a program.
static void wait_in_kernel(void) {
	if (vfork() == 0) {
		pause();
		_exit(0);
	}
}

// A worker that feeds the rank dies; the rank itself still holds the end that is written to.
static void start_worker(void) {
	if (pipe(feed) != 0)
		abort();
	pid_t pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 10; i++) {
			if (write(feed[1], "x", 1) != 1)
				break;
			usleep(50000);
		}
		raise(SIGKILL);
	}
}

static void next_batch(void) {
	char c;
	if (read(feed[0], &c, 1) != 1)
		abort();
}

static void hang(MPI_Comm other) {
	double x = 1, y;
	if (!strcmp(mode, "stop"))
		raise(SIGSTOP);
	else if (!strcmp(mode, "loop") || !strcmp(mode, "livelock"))
		loop();
	else if (!strcmp(mode, "sleep") || !strcmp(mode, "silent") || !strcmp(mode, "finalize"))
		for (;;)
			sleep(1000);
	else if (!strcmp(mode, "mutex"))
		lock_twice();
	else if (!strcmp(mode, "missing"))
		MPI_Recv(&y, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else if (!strcmp(mode, "mismatch"))
		MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, other);
	else if (!strcmp(mode, "fifo"))
		read_fifo();
	else if (!strcmp(mode, "kernel"))
		wait_in_kernel();
	else if (!strcmp(mode, "worker"))
		for (;;)
			next_batch();
}

int main(int argc, char **argv) {
	if (argc != 4)
		return 2;
	mode = argv[1];
	fifo = argv[3];
	int who = atoi(argv[2]), rank = atoi(getenv("RANK")), size;
	if (!strcmp(mode, "worker") && who == rank)
		start_worker();
	if (!strcmp(mode, "init") && who == rank)
		for (;;)
			sleep(1000);
	MPI_Init(&argc, &argv);
	MPI_Comm other;
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int step = 0; step < 10; step++) {
		double x = rank, sum;
		struct timespec busy = {0, 60000000};
		nanosleep(&busy, NULL);
		MPI_Allreduce(&x, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		printf("step %d loss %f\n", step, 1 / (sum + step));
		fflush(stdout);
	}
	if (who == rank || who < 0)
		hang(other);
	if (strcmp(mode, "finalize")) {
		double x = rank, sum;
		MPI_Allreduce(&x, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	}
	MPI_Finalize();
	return 0;
}
