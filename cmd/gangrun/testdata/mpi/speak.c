// speak MODE: a gang that ends itself and says why, in the ways of public
// programs. What rank 0 says is the cause, whichever rank ends first.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank;

// say prints to one of the streams, at once.
static void say(FILE *to, const char *text) {
	fputs(text, to);
	fflush(to);
}

static const char *const style = "ERROR: Unrecognized pair style 'foo' (src/force.cpp:278)\nLast command: pair_style foo\n";

static const char *const namelist =
	"\n %%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%\n"
	"     Error in routine  read_namelists (1):\n"
	"      bad line in namelist &electrons: \" conv_thrr=1d-8\"\n"
	" %%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%\n"
	"\n     stopping ...\n";

static const char *const domain =
	"\n-------------------------------------------------------\n"
	"Program:     mdrun, version 1.0\nMPI rank:    0\n\n"
	"Fatal error:\nThere is no domain decomposition for 3 ranks that is compatible with the\n"
	"given box and a minimum cell size of 1.2 nm\n\n"
	"For more information and tips, see the manual\n"
	"-------------------------------------------------------\n";

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	const char *mode = argc > 1 ? argv[1] : "";
	MPI_Barrier(MPI_COMM_WORLD);
	if (!strcmp(mode, "one-aborts")) { // the others wait for it
		if (rank == 0) {
			say(stdout, style);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	} else if (!strcmp(mode, "all-abort")) {
		if (rank == 0)
			say(stdout, namelist);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Abort(MPI_COMM_WORLD, 1);
	} else if (!strcmp(mode, "stderr-abort")) {
		if (rank == 0) {
			say(stderr, domain);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	} else if (!strcmp(mode, "all-exit")) {
		if (rank == 0)
			say(stdout, style);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Finalize();
		exit(1);
	} else if (!strcmp(mode, "stop")) { // as Fortran's STOP
		if (rank == 0)
			say(stderr, "STOP the grid has no points\n");
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Finalize();
		exit(2);
	} else if (!strcmp(mode, "bare")) {
		if (rank == 0)
			MPI_Abort(MPI_COMM_WORLD, 1);
		MPI_Barrier(MPI_COMM_WORLD);
	} else if (!strcmp(mode, "crash")) {
		if (rank == 0) {
			say(stdout, style);
			signal(SIGSEGV, SIG_DFL);
			raise(SIGSEGV);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	} else if (!strcmp(mode, "truncate")) { // rank 1 sends more than rank 0 takes
		char words[32] = "";
		if (rank == 0)
			MPI_Recv(words, 4, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		else if (rank == 1)
			MPI_Send(words, 32, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	fprintf(stderr, "usage: speak one-aborts|all-abort|stderr-abort|all-exit|stop|bare|crash|truncate\n");
	return 9;
}
