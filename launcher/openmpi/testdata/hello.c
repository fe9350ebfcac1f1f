#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

/* Prints world, locality and program number; the sum comes by messages. */
int main(int argc, char **argv)
{
	int rank, size, local, locals, found, sum = 0, *app;
	char line[200];
	MPI_Comm host;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
	MPI_Comm_rank(host, &local);
	MPI_Comm_size(host, &locals);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &app, &found);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	int length = snprintf(line, sizeof line, "rank %d of %d local %d of %d app %d sum %d\n",
		rank, size, local, locals, found ? *app : -1, sum);
	if (write(1, line, length) != length)
		return 1;
	MPI_Finalize();
	return 0;
}
