// Package inventory reads lists of hosts in every form in which users and batch
// systems keep them: --hosts, hostfiles of Open MPI and MPICH, plain lists, what
// Slurm, PBS, LSF, Grid Engine, OAR, Flux and the MPI Operator say to their jobs,
// Slurm's topology.conf, and gangrun's own YAML inventory. It does not touch the
// hosts. Only ReadFile and Output touch this machine: files and what commands
// print come through functions that the caller hands in.
//
// Whatever is wrong is reported with its file and line and with what to write
// instead. What a list can expand to is bounded before it is expanded.
//
// The GPUs of an inventory have no UUID of a driver. They are called GPU0, GPU1 ...
// on every host, so that only host and UUID together name a GPU.
package inventory
