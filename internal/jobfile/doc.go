// Package jobfile turns what a user wrote, flags and a YAML job file, into a
// job.Spec, and a Spec back into a job file. One table of fields names every
// flag and key, so that the command line, the file, the documentation and the
// completion say the same. Whatever is wrong is reported with its file, line
// and column, or with its flag.
package jobfile
