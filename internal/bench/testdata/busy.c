/* busy SECONDS: all ranks reduce a number again and again; rank 0 prints how often. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
	double until, sum, x[1024] = {1};
	long rounds = 0;
	int rank, go = 1;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	until = MPI_Wtime() + (argc > 1 ? atof(argv[1]) : 1);
	while (go) {
		for (int i = 0; i < 100; i++, rounds++)
			for (int j = 0; j < 1024; j++)
				x[j] = x[j] * 0.999 + j;
		MPI_Allreduce(&x[5], &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		go = MPI_Wtime() < until;
		MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	if (rank == 0)
		printf("rounds %ld\n", rounds);
	MPI_Finalize();
	return 0;
}
