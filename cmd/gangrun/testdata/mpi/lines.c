// lines MODE: every rank says on standard error which of its standard streams
// are terminals, and prints lines that it does not flush. Then:
//
//	end    it ends well
//	mpi    rank 1 is killed, while the others wait for it in a barrier
//	plain  the same without MPI: rank 1 is the environment's, the others hang
//	bytes  as end, but what it prints is every byte and lines of all kinds
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void bytes(void) {
	for (int b = 0; b < 256; b++)
		putchar(b);
	fputs("\n\r\n\n\r\t\x04\x03\x1a\x1c\x11\x13\x7f one\ttab\r\n", stdout);
	for (int i = 0; i < 1 << 20; i++)
		putchar('x');
	fputs("\r\nno end", stdout);
}

int main(int argc, char **argv) {
	if (argc != 2)
		return 2;
	const char *mode = argv[1];
	fprintf(stderr, "terminals: %d%d%d\n", isatty(0), isatty(1), isatty(2));
	if (!strcmp(mode, "bytes")) {
		bytes();
	} else {
		for (int i = 0; i < 100; i++)
			printf("line %d\n", i);
	}
	if (!strcmp(mode, "plain")) {
		const char *rank = getenv("RANK");
		if (rank && !strcmp(rank, "1"))
			raise(SIGKILL);
		for (;;)
			pause();
	}
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!strcmp(mode, "mpi")) {
		if (rank == 1)
			raise(SIGKILL);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Finalize();
	return 0;
}
