/* A program that tells its progress itself, from a child process too, and touches its heartbeat file. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rank, status = 1;
	const char *fd = getenv("GANGRUN_PROGRESS_FD"), *file = getenv("GANGRUN_HEARTBEAT");
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!fd || !file)
		MPI_Abort(MPI_COMM_WORLD, 3);
	if (dprintf(atoi(fd), "gangrun: progress %d total=100 loss=0.5\n", 10 + rank) < 0)
		MPI_Abort(MPI_COMM_WORLD, 4);
	MPI_Barrier(MPI_COMM_WORLD);
	pid_t child = fork();
	if (child == 0)
		_exit(dprintf(atoi(fd), "gangrun: progress %d total=100 loss=0.25\n", 20 + rank) < 0);
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		MPI_Abort(MPI_COMM_WORLD, 5);
	int touched = open(file, O_WRONLY | O_CREAT, 0600);
	if (touched < 0 || close(touched) < 0)
		MPI_Abort(MPI_COMM_WORLD, 6);
	printf("step 5000 loss 9\n");
	MPI_Finalize();
	return 0;
}
