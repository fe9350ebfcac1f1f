package preflight

import "github.com/gangrun/gangrun/internal/job"

var imageCheck = Check{
	Code: "image",
	Asks: "Can every host start a container from the image?",
	Problems: []Problem{
		{"image-no-runtime", job.SeverityError, job.LaunchError,
			"the image needs containerd: {error}; apptainer, singularity and enroot are not there either",
			"have the administrator install containerd and start it, or start one of your own (containerd-rootless-setuptool.sh of nerdctl); if it listens elsewhere, set CONTAINERD_ADDRESS to its socket"},
		{"image-other-runtime", job.SeverityError, job.LaunchError,
			"the image needs containerd: {error}; {others} is there, but --image does not use it",
			"leave --image out, and begin the command of the ranks with it, as in: -- {start} python3 train.py; or have the administrator install containerd"},
		{"image-forbidden", job.SeverityError, job.PermissionError,
			"{error}",
			"have the administrator add this user to {group}; or start a containerd of your own (containerd-rootless-setuptool.sh of nerdctl), or set CONTAINERD_ADDRESS to the socket of another one; whoever may open the socket has the rights of root on that host"},
		{"image-missing", job.SeverityError, job.IncorrectInputs,
			"{error}",
			"correct its name; or write the image to an archive on a machine that has it, as with docker save -o train.tar, and use --image ./train.tar"},
		{"image-unpulled", job.SeverityError, job.NetworkError,
			"{error}",
			"if the hosts have no way to the registry, write the image to an archive on a machine that has it, as with docker save -o train.tar, and use --image ./train.tar"},
		{"image-refused", job.SeverityError, job.PermissionError,
			"{error}",
			"log in to the registry on this machine (docker login, podman login), and check the name"},
		{"image-platform", job.SeverityError, job.IncorrectInputs,
			"{error}",
			"build the image for that platform, or leave those hosts out"},
		{"image-broken", job.SeverityError, job.IncorrectInputs,
			"{error}",
			"write the archive again, and compare its size with the original's"},
		{"image-full", job.SeverityError, job.DiskFull,
			"there is no room for the image: {error}",
			"remove images that are not needed there (ctr images ls, ctr images rm), or leave those hosts out"},
		{"image-mount", job.SeverityError, job.IncorrectInputs,
			"{error}",
			"correct the path, or make it there; a mount can be written to with :rw behind it"},
		{"image-device", job.SeverityError, job.LaunchError,
			"{error}",
			"have the administrator describe the GPUs for containers: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml; or use another kind with --gpu-kind, or --gpus-per-rank 0"},
		{"image-entry", job.SeverityError, job.LaunchError,
			"{error}",
			"build the image with an ENTRYPOINT that exists in it, or with none: ENTRYPOINT []"},
		{"image-no-user", job.SeverityError, job.LaunchError,
			"{error}",
			"build the image with a USER that is in its /etc/passwd and /etc/group, or use --container-user UID:GID"},
		{"image-rootless", job.SeverityError, job.LaunchError,
			"{error}",
			"leave out --container-memory, --container-cpus and --container-user, or use the containerd of the host: have the administrator add this user to a group that may open its socket"},
		{"image-failed", job.SeverityError, job.LaunchError,
			"no container can be started: {error}",
			"look at the log of containerd there (journalctl -u containerd)"},
	},
	Judge: each(func(_ job.Spec, f job.Facts) []Hit {
		if f.Image == nil || f.Image.Problem == "" {
			return nil
		}
		h := Hit{Signature: "image-" + string(f.Image.Problem), Path: f.Image.Name, Values: map[string]string{"error": f.Image.Error}}
		switch {
		case f.Image.Problem == job.ImageForbidden && f.Image.Group != "":
			h.Values["group"] = "the group " + quote(f.Image.Group)
		case f.Image.Problem == job.ImageForbidden:
			h.Values["group"] = "a group that may open it ([grpc] gid in /etc/containerd/config.toml)"
		case f.Image.Problem == job.ImageNoRuntime && len(f.Image.Others) > 0:
			h.Signature = "image-other-runtime"
			h.Values["others"], h.Values["start"] = f.Image.Others[0], startWith(f.Image.Others[0])
		}
		return []Hit{h}
	}),
}

// startWith returns the beginning of a command line that runs a program in an image with apptainer, singularity
// or enroot.
func startWith(runtime string) string {
	if runtime == "enroot" {
		return "enroot start NAME"
	}
	return runtime + " exec IMAGE"
}

var imageSameCheck = Check{
	Code:      "image-same",
	Asks:      "Does every host have the same image?",
	DependsOn: []string{"image"},
	Problems: []Problem{
		{"image-differs", job.SeverityError, job.LaunchError,
			"the image {path} is not the same one on {hosts}{rest}",
			"pull it again on every host, name it by its digest (NAME@sha256:...), or use an archive of it: --image ./train.tar"},
	},
	Judge: func(_ job.Spec, facts []job.Facts) []Hit {
		return different("image-differs", facts, func(f job.Facts) (name, digest string) {
			if f.Image == nil {
				return "", ""
			}
			return f.Image.Name, f.Image.Digest
		})
	},
}

// unmounted returns the Problem of a path that does not exist in the container. what says what the path is, as
// in "the script".
func unmounted(prefix, what string) Problem {
	return Problem{prefix + "-unmounted", job.SeverityError, job.IncorrectInputs,
		what + " {path} exists on the host, but not in the container: it is not mounted",
		"add --mount {mount}, or in the job file: container: {mounts: [{mount}]}; with :rw behind it if the ranks write there"}
}
