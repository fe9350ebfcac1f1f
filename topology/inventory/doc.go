// Package inventory reads lists of hosts in the forms that users and batch systems have:
// --hosts, hostfiles of Open MPI and MPICH, plain lists, the variables and files of batch
// systems, Slurm's topology.conf, and gangrun's own YAML inventory. It does not connect to
// hosts. It reads files only in ReadFile and through functions of the caller.
//
// Errors name the file and line, and what to write instead. The size of a list is checked
// before the list is expanded.
//
// The GPUs of an inventory have no UUIDs of a driver. They are called GPU0, GPU1 and so on
// on every host, so that only a host and a UUID together identify a GPU.
package inventory
