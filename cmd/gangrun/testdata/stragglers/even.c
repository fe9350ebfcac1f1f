/* even SECONDS FILE spin|sleep: ranks that do the same work. In each step a rank computes, reads a block of
 * FILE from the disk, and adds a vector to those of the others, for which it waits in the library or asleep. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { block = 4096, values = 32768 };

static int asleep;

static void await(MPI_Request request)
{
	int done = 0;

	if (!asleep)
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	while (asleep && MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done)
		usleep(500);
}

int main(int argc, char **argv)
{
	static double mine[values], sum[values];
	int rank, step = 0, go = 1;
	void *data;
	MPI_Request request;

	if (argc != 4 || posix_memalign(&data, block, block) != 0)
		return 2;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	int fd = open(argv[2], O_RDONLY | O_DIRECT);
	if (fd < 0) {
		perror(argv[2]);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	asleep = strcmp(argv[3], "sleep") == 0;
	double begin = MPI_Wtime();
	while (go) {
		for (volatile long i = 0; i < 5000000; i++)
			;
		if (pread(fd, data, block, (step % 256) * block) != block) {
			perror(argv[2]);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
		MPI_Iallreduce(mine, sum, values, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
		await(request);
		if (rank == 0)
			go = MPI_Wtime() - begin < atof(argv[1]);
		MPI_Ibcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
		await(request);
		step++;
		if (rank == 0) {
			printf("step %d\n", step);
			fflush(stdout);
		}
	}
	MPI_Finalize();
	return 0;
}
