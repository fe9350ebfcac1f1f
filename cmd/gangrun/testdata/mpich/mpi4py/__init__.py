"""As much of mpi4py as examples/digits-mpi needs, over MPICH's own library. Debian builds mpi4py for Open MPI."""


class rc:
    initialize = True
    finalize = None
