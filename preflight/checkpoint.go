package preflight

import (
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

const checkpointHint = "name another directory with --checkpoint-dir, or get permission to make and change files in it"

var checkpointDirCheck = Check{
	Code:      "checkpoint-dir",
	Asks:      "Can every host make, write, sync, rename and read a file in the checkpoint directory?",
	DependsOn: []string{"image"},
	Problems: []Problem{
		unmounted("checkpoint-dir", "the checkpoint directory"),
		{"checkpoint-dir-missing", job.SeverityError, job.OutputError,
			"the checkpoint directory {path} cannot be used: gangrun could not {step}: {error}",
			"make the directory above it, or name another one with --checkpoint-dir"},
		{"checkpoint-dir-permission", job.SeverityError, job.PermissionError,
			"the checkpoint directory {path} cannot be used: gangrun could not {step}: {error}",
			checkpointHint},
		{"checkpoint-dir-read-only", job.SeverityError, job.OutputError,
			"the checkpoint directory {path} is on a file system that is mounted read-only: gangrun could not {step}",
			"name a directory on another file system with --checkpoint-dir"},
		{"checkpoint-dir-mount", job.SeverityError, job.OutputError,
			"the checkpoint directory {path} is read-only in the container: the job mounts {mount} there",
			"use --mount {write}, or leave this mount out: gangrun mounts the checkpoint directory by itself"},
		{"checkpoint-dir-elsewhere", job.SeverityWarning, "",
			"in the container, the checkpoint directory {path} is {source} of the host: gangrun does not find the checkpoints that the ranks write there, and no attempt resumes",
			"use --checkpoint-dir {source}, or leave the mount out: gangrun mounts the checkpoint directory by itself"},
		{"checkpoint-dir-kind", job.SeverityError, job.OutputError,
			"the checkpoint directory {path} is not a directory",
			"name a directory with --checkpoint-dir"},
		{"checkpoint-dir-full", job.SeverityError, job.DiskFull,
			"the checkpoint directory {path} has no room left: gangrun could not {step}: {error}",
			"delete what is not needed there, raise your quota, or name another directory with --checkpoint-dir"},
		{"checkpoint-dir-io", job.SeverityError, job.StorageError,
			"the checkpoint directory {path} cannot be used: gangrun could not {step}: {error}",
			elsewhereHint},
	},
	Judge: each(func(s job.Spec, f job.Facts) []Hit {
		if f.Check == nil {
			return nil
		}
		if hits := mountHits(s, f.Check.PathFact); hits != nil {
			return hits
		}
		hits := pathHits("checkpoint-dir", f.Check.PathFact,
			job.ErrorMissing, job.ErrorPermission, job.ErrorReadOnly, job.ErrorKindOf, job.ErrorFull)
		for _, h := range hits {
			h.Values["step"] = stepWords(f.Check.Step)
		}
		return hits
	}),
}

// mountHits returns the Hit for a mount of the user that covers the checkpoint directory, if it
// keeps the ranks from writing there or gangrun from finding the checkpoints.
func mountHits(s job.Spec, f job.PathFact) []Hit {
	box := s.Box()
	if box == nil {
		return nil
	}
	m, ok := box.At(s.CheckpointDir)
	switch {
	case !ok:
		return nil
	case f.Kind == job.ErrorReadOnly && !m.Write:
		write := m
		write.Write = true
		return []Hit{{Signature: "checkpoint-dir-mount", Path: f.Path, Values: about(f.Path, "mount", quote(m.String()), "write", quote(write.String()))}}
	case f.Kind == job.ErrorNone && m.Source != m.Target:
		below := strings.TrimPrefix(s.CheckpointDir, m.Target)
		return []Hit{{Signature: "checkpoint-dir-elsewhere", Path: f.Path, Values: about(f.Path, "source", quote(m.Source+below))}}
	}
	return nil
}

// stepWords says which step failed, as the end of a sentence with "could not".
func stepWords(step string) string {
	switch step {
	case "create":
		return "make it"
	case "write":
		return "write a file in it"
	case "sync":
		return "sync a file in it to disk"
	case "rename":
		return "rename a file in it"
	case "read":
		return "read back a file in it"
	}
	return "use it"
}

// A checkpoint directory should have at least this much free space, in bytes. With less than leastRoom, not
// even the smallest model fits. With less than littleRoom, a run of some hours will probably fail.
const (
	leastRoom  = 1 << 20
	littleRoom = 16 << 20
)

var checkpointRoomCheck = Check{
	Code:      "checkpoint-room",
	Asks:      "Is there room for the next checkpoints, if they are as large as the largest one there?",
	DependsOn: []string{"checkpoint-dir"},
	Problems: []Problem{
		{"checkpoint-room-none", job.SeverityError, job.DiskFull,
			"the checkpoint directory {path} has {free} free, less than {need}",
			"delete what is not needed there, raise your quota, or name another directory with --checkpoint-dir"},
		{"checkpoint-room-little", job.SeverityWarning, "",
			"the checkpoint directory {path} has {free} free, less than {need}",
			"the run may end with a full disk: make room, or name another directory with --checkpoint-dir"},
	},
	Judge: func(_ job.Spec, facts []job.Facts) []Hit {
		var hits []Hit
		for _, signature := range []string{"checkpoint-room-none", "checkpoint-room-little"} {
			var tight *job.DirectoryFact
			var hosts []string
			for _, f := range facts {
				if f.Check == nil || roomProblem(*f.Check) != signature {
					continue
				}
				hosts = append(hosts, f.Host)
				if tight == nil || f.Check.Free < tight.Free {
					tight = f.Check
				}
			}
			if tight != nil {
				hits = append(hits, Hit{Signature: signature, Hosts: hosts, Path: tight.Path,
					Values: about(tight.Path, "free", text.Bytes(tight.Free), "need", roomNeed(*tight))})
			}
		}
		return hits
	},
}

// roomProblem returns the signature of a problem with the free space, or "". Some network and FUSE file systems
// always report that no byte is free. This shows nothing, because a file could be written.
func roomProblem(d job.DirectoryFact) string {
	switch {
	case d.Free == 0:
		return ""
	case d.Free < max(d.Largest, leastRoom):
		return "checkpoint-room-none"
	case d.Free < max(2*d.Largest, littleRoom):
		return "checkpoint-room-little"
	}
	return ""
}

// roomNeed says for what there should be enough free space.
func roomNeed(d job.DirectoryFact) string {
	switch {
	case d.Free < d.Largest:
		return "its largest entry takes (" + text.Bytes(d.Largest) + ")"
	case d.Free < leastRoom:
		return text.Bytes(leastRoom)
	case d.Free < 2*d.Largest:
		return "twice its largest entry (" + text.Bytes(2*d.Largest) + ")"
	}
	return text.Bytes(littleRoom)
}
