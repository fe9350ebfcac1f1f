// Package jobfile makes a job.Spec from flags and a YAML job file, and writes a Spec as a
// job file. One table of fields defines every flag and key. The command line, the file, the
// documentation and the completion all use that table. Errors name the file, line and
// column, or the flag.
package jobfile
