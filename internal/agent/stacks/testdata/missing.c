// missing.c: rank 2 never enters the allreduce in which the others wait.
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static void average(int rank)
{
	double mine = rank, sum;
	MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void load(int fd)
{
	char byte;
	read(fd, &byte, 1);
}

int main(int argc, char **argv)
{
	int rank, fds[2];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	pipe(fds);
	printf("rank %d %d\n", rank, getpid());
	fflush(stdout);
	if (rank == 2)
		load(fds[0]);
	average(rank);
	MPI_Finalize();
	return 0;
}
