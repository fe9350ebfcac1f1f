/* A training of which the loss no longer falls. argv[1] says what it does when it is asked for a checkpoint: it writes one
   and goes on (saves), writes one and exits (quits), or does nothing, and does not end at SIGTERM, either (ignores). */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t signalled;

static void asked(int sig) { signalled = 1; (void)sig; }

/* After SIGTERM, a rank that ignores it sends nothing any more. Otherwise SIGPIPE could end it when it sends something to
   a rank that was killed a moment earlier. */
static void hold(int sig)
{
	(void)sig;
	for (;;)
		pause();
}

static void save(int step)
{
	char path[4096], part[4200];
	const char *dir = getenv("GANGRUN_CHECKPOINT_DIR");
	snprintf(path, sizeof path, "%s/step_%d.json", dir, step);
	snprintf(part, sizeof part, "%s.tmp", path);
	FILE *f = fopen(part, "w");
	if (!f || fprintf(f, "{\"step\": %d}\n", step) < 0 || fclose(f) || rename(part, path))
		MPI_Abort(MPI_COMM_WORLD, 3);
}

int main(int argc, char **argv)
{
	int rank, done = 0;
	const char *file = getenv("GANGRUN_STOP_FILE"), *how = argc > 1 ? argv[1] : "";
	if (!strcmp(how, "ignores"))
		signal(SIGTERM, hold);
	else
		signal(SIGUSR1, asked);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int step = 0; step < 100000; step++) {
		usleep(20000);
		if (rank == 0)
			printf("step %d/100000 loss %g\n", step, step < 10 ? 1.0 : 0.2), fflush(stdout);
		int stop = signalled || (file && *file && access(file, F_OK) == 0);
		MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
		if (!stop || done || !strcmp(how, "ignores"))
			continue;
		if (rank == 0)
			save(step);
		done = 1;
		if (!strcmp(how, "quits"))
			break;
	}
	MPI_Finalize();
	return 0;
}
