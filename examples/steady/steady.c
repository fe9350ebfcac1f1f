// steady adds numbers up with all ranks, STEPS times, waits SECONDS after each
// and checks every sum. It prints the same as steady.sh: what it prints depends on
// its rank alone, so that a lost or doubled byte can be seen. With a FILE, the last
// step waits until that is there.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
	int rank, size;
	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: steady STEPS SECONDS [FILE]\n");
		return 2;
	}
	int steps = atoi(argv[1]);
	double seconds = atof(argv[2]);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i <= steps; i++) {
		while (argc == 4 && i == steps && access(argv[3], F_OK) != 0)
			usleep(20000);
		long mine = (long)(rank + 1) * i, sum = 0;
		MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
		if (sum != (long)size * (size + 1) / 2 * i) {
			fprintf(stderr, "steady: step %d: the sum is %ld\n", i, sum);
			MPI_Abort(MPI_COMM_WORLD, 3);
		}
		printf("rank %d of %d: step %d/%d\n", rank, size, i, steps);
		fprintf(stderr, "rank %d of %d: note %d\n", rank, size, i);
		usleep((useconds_t)(seconds * 1e6));
	}
	MPI_Finalize();
	return 0;
}
