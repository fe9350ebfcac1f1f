/* The job that launchers are measured by: MPI_Init, MPI_Barrier, MPI_Finalize.
 *
 * barrier N        a gang of N does that, and fails if it is of another size
 * barrier N hang   rank 0 never enters the barrier; the others say that they
 *                  are in it by a file rank.R with their PID, and stay
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int up(int rank)
{
    char made[32], name[32];
    snprintf(made, sizeof made, "pid.%d", rank);
    snprintf(name, sizeof name, "rank.%d", rank);
    FILE *f = fopen(made, "w");
    if (!f)
        return -1;
    fprintf(f, "%ld\n", (long)getpid());
    return fclose(f) || rename(made, name) ? -1 : 0;
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Request barrier;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 2 || size != atoi(argv[1])) {
        fprintf(stderr, "barrier: rank %d of %d, want a gang of %s\n", rank, size, argc < 2 ? "?" : argv[1]);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    if (argc == 2) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Finalize();
        return 0;
    }
    if (rank > 0)
        MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    if (up(rank)) {
        perror("barrier: rank file");
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
    if (rank == 0)
        for (;;)
            pause();
    MPI_Wait(&barrier, MPI_STATUS_IGNORE);
    fprintf(stderr, "barrier: rank %d came out of the barrier\n", rank);
    return 5;
}
