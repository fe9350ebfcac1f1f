// Package inventory reads lists of hosts. It reads --hosts, hostfiles of Open MPI and MPICH,
// plain lists, the variables and files of batch systems, Slurm's topology.conf, and gangrun's
// own YAML inventory. It does not connect to hosts. It reads files only in ReadFile and through
// functions that the caller provides.
//
// Errors name the file and line, and say what to write instead. The size of a list is checked
// before the list is expanded.
//
// The GPUs of an inventory have no UUIDs from a driver. On every host, their UUIDs are GPU0,
// GPU1 and so on, so a GPU is identified only by its host and its UUID together.
package inventory
