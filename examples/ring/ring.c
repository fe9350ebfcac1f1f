// ring [ITERATIONS [BYTES]]: a token goes round all ranks, and everyone checks
// it. ITERATIONS (10) is how often it goes round, BYTES (1024) how long it is.
//
// Each rank says where it is, rank 0 how far the gang is. A token that is not
// what it should be is reported on standard error and ends the gang with code 1;
// arguments that make no sense end it with code 2.
#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { WRONG = 1, USAGE = 2, TAG = 7 };

// parse reads a number from 1 to most; 0 where text is none.
static int parse(const char *text, int most) {
	char *end;
	errno = 0;
	long n = strtol(text, &end, 10);
	return errno || end == text || *end || n < 1 || n > most ? 0 : (int)n;
}

// want is what byte i of the token is in an iteration when that many ranks have
// passed it on.
static unsigned char want(int iteration, int hops, int i) {
	return (unsigned char)((unsigned)iteration * 31u + (unsigned)i * 7u + (unsigned)hops);
}

// check ends the gang unless the token is right.
static void check(const unsigned char *token, int bytes, int iteration, int hops, int rank) {
	for (int i = 0; i < bytes; i++) {
		if (token[i] == want(iteration, hops, i))
			continue;
		fprintf(stderr, "rank %d: step %d: byte %d of the token is %d after %d ranks, want %d\n",
			rank, iteration, i, token[i], hops, want(iteration, hops, i));
		fflush(stderr);
		MPI_Abort(MPI_COMM_WORLD, WRONG);
		exit(WRONG);
	}
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	int rank, size;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	int iterations = argc > 1 ? parse(argv[1], INT_MAX) : 10, bytes = argc > 2 ? parse(argv[2], 1 << 30) : 1024;
	if (argc > 3 || iterations == 0 || bytes == 0) {
		if (rank == 0)
			fprintf(stderr, "usage: ring [ITERATIONS [BYTES]], both at least 1 and BYTES at most %d\n", 1 << 30);
		MPI_Finalize();
		return USAGE;
	}
	unsigned char *token = malloc((size_t)bytes);
	if (!token) {
		fprintf(stderr, "rank %d: no memory for a token of %d bytes\n", rank, bytes);
		MPI_Abort(MPI_COMM_WORLD, WRONG);
		return WRONG;
	}

	// The ranks of one host are those that can share memory, whatever its name.
	char host[MPI_MAX_PROCESSOR_NAME];
	int length, here;
	MPI_Get_processor_name(host, &length);
	MPI_Comm sharing;
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &sharing);
	MPI_Comm_size(sharing, &here);
	MPI_Comm_free(&sharing);
	printf("rank %d of %d on %s, %d here\n", rank, size, host, here);
	fflush(stdout);

	int next = (rank + 1) % size, previous = (rank + size - 1) % size;
	double start = MPI_Wtime();
	for (int step = 1; step <= iterations; step++) {
		if (rank == 0) {
			for (int i = 0; i < bytes; i++)
				token[i] = want(step, 0, i);
			// Both at once: alone in the ring, rank 0 is its own neighbour.
			MPI_Sendrecv_replace(token, bytes, MPI_BYTE, next, TAG, previous, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			check(token, bytes, step, size - 1, rank);
			printf("step %d/%d\n", step, iterations);
			fflush(stdout);
			continue;
		}
		MPI_Recv(token, bytes, MPI_BYTE, previous, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check(token, bytes, step, rank - 1, rank);
		for (int i = 0; i < bytes; i++)
			token[i]++;
		MPI_Send(token, bytes, MPI_BYTE, next, TAG, MPI_COMM_WORLD);
	}
	double took = MPI_Wtime() - start;
	if (rank == 0)
		printf("the token of %d bytes went round %d ranks %d times, %.1f us a hop\n",
			bytes, size, iterations, 1e6 * took / ((double)iterations * size));
	free(token);
	MPI_Finalize();
	return 0;
}
