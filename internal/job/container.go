package job

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Container describes the containers of a job with an image. Each host has one container.
type Container struct {
	// Mounts are directories and files of the hosts that the ranks see, as SOURCE[:TARGET][:ro|rw].
	Mounts []string `json:"mounts,omitempty"`
	// Workdir is the path, in the container, of the directory in which ranks start. If it is
	// empty, ranks start in Spec.Workdir if a mount shows that directory at the same path, and
	// otherwise in the working directory of the image.
	Workdir string `json:"workdir,omitempty"`
	// Network is the network of the ranks. It is empty in jobs without an image: they use the
	// network of the host.
	Network ContainerNetwork `json:"network,omitempty"`
	// User is the user of the ranks. Empty means the user who runs gangrun's agent on the host.
	// "image" means the user whom the image names. Other values have the form UID:GID.
	User string `json:"user,omitempty"`
	// ShmSize is the size of /dev/shm; 0 means half of the host's memory. Memory limits the memory of all ranks
	// of a host together; 0 means no limit.
	ShmSize Size `json:"shm_size,omitempty"`
	Memory  Size `json:"memory,omitempty"`
	// CPUs limits the CPU time of all ranks of a host together, in CPUs; 0 means no limit.
	CPUs int `json:"cpus,omitempty"`
	// ReadOnly makes the root directory read-only. /tmp and /var/tmp are then in memory and can
	// be written.
	ReadOnly bool `json:"read_only,omitempty"`
	// GPUKind is the kind of the GPUs in the Container Device Interface. Empty means
	// "nvidia.com/gpu".
	GPUKind string `json:"gpu_kind,omitempty"`
}

// ContainerNetwork is the network that containers see.
type ContainerNetwork string

// The networks.
const (
	NetworkHost ContainerNetwork = "host"
	NetworkNone ContainerNetwork = "none" // only a loopback interface
)

// ContainerNetworks lists every ContainerNetwork.
func ContainerNetworks() []ContainerNetwork { return []ContainerNetwork{NetworkHost, NetworkNone} }

// ImageUser is the value of Container.User that means the user whom the image names.
const ImageUser = "image"

// Mount shows a directory or file of a host to the ranks in a container. Both paths are absolute.
type Mount struct {
	Source string `json:"source"`
	Target string `json:"target"`
	Write  bool   `json:"write,omitempty"`
	// Auto is set if the user did not ask for the mount: gangrun mounts the path because the
	// job uses it. The path may be missing on a host.
	Auto bool `json:"auto,omitempty"`
}

// String returns the mount as it is written in Container.Mounts.
func (m Mount) String() string {
	text := m.Source
	if m.Target != m.Source {
		text += ":" + m.Target
	}
	if m.Write {
		text += ":rw"
	}
	return text
}

// ParseMount reads a mount in the form of Container.Mounts. A relative source is relative to dir.
func ParseMount(text, dir string) (Mount, error) {
	parts := strings.Split(text, ":")
	m := Mount{}
	switch last := parts[len(parts)-1]; {
	case len(parts) > 1 && last == "rw":
		m.Write, parts = true, parts[:len(parts)-1]
	case len(parts) > 1 && last == "ro":
		parts = parts[:len(parts)-1]
	}
	if len(parts) > 2 || parts[0] == "" || parts[len(parts)-1] == "" {
		return m, fmt.Errorf("%q is not SOURCE[:TARGET][:ro|rw]", text)
	}
	m.Source = parts[0]
	if !filepath.IsAbs(m.Source) {
		m.Source = filepath.Join(dir, m.Source)
	}
	m.Source = filepath.Clean(m.Source)
	m.Target = m.Source
	if len(parts) == 2 {
		if !filepath.IsAbs(parts[1]) {
			return m, fmt.Errorf("the target of the mount %q is not an absolute path", text)
		}
		m.Target = filepath.Clean(parts[1])
	}
	if m.Target == "/" {
		return m, fmt.Errorf("the mount %q would hide the whole image", text)
	}
	return m, nil
}

// Box is what a host needs to know to start the container of one gang.
type Box struct {
	Container
	Image  string   `json:"image"` // its full name in the hosts' stores
	Dir    string   `json:"dir"`   // the working directory of the job on the host
	Mounts []Mount  `json:"all_mounts,omitempty"`
	GPUs   []string `json:"gpus,omitempty"` // UUIDs
	// Discard makes the host discard what the ranks write in mounted directories.
	Discard bool `json:"discard,omitempty"`
	// Empty is a directory that the ranks see as empty; "" means none.
	Empty string `json:"empty,omitempty"`
}

// At returns the mount through which a container sees path. ok is false if no mount covers path. The container
// then sees what the image has at path.
func (b Box) At(path string) (at Mount, ok bool) {
	for _, m := range b.Mounts {
		if (path == m.Target || strings.HasPrefix(path, m.Target+"/")) && len(m.Target) >= len(at.Target) {
			at, ok = m, true
		}
	}
	return at, ok
}

// Mounted returns the mounts of a job with an image: the mounts that the user names, and a mount for each input
// and for the checkpoint directory, unless a mount of the user already shows it. A mount that shows the
// checkpoint directory counts only if it is writable. But if the user mounts something at exactly the path of
// the checkpoint directory, Mounted uses that mount even if it is read-only.
func (s Spec) Mounted() (mounts []Mount, err error) {
	for _, text := range s.Container.Mounts {
		m, err := ParseMount(text, s.Workdir)
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, m)
	}
	covered := func(path string, write bool) bool {
		return slices.ContainsFunc(mounts, func(m Mount) bool {
			below := path == m.Target || strings.HasPrefix(path, m.Target+"/")
			return below && (m.Write || !write || path == m.Target)
		})
	}
	if dir := s.CheckpointDir; dir != "" && !covered(dir, true) {
		mounts = append(mounts, Mount{Source: dir, Target: dir, Write: true, Auto: true})
	}
	for _, input := range s.Inputs {
		if !filepath.IsAbs(input) {
			input = filepath.Join(s.Workdir, input)
		}
		if input = filepath.Clean(input); !covered(input, false) {
			mounts = append(mounts, Mount{Source: input, Target: input, Auto: true})
		}
	}
	return mounts, nil
}

// Box returns the description of the containers of the job. The description has no image name and no
// GPUs yet. Box returns nil if the job has no image. The Spec must be valid.
func (s Spec) Box() *Box {
	if s.Image == "" {
		return nil
	}
	mounts, _ := s.Mounted()
	return &Box{Container: s.Container, Mounts: mounts, Dir: s.Workdir}
}

// RankDir returns the path of the directory in which ranks start. If the job has an image, it is a path
// in the container, and "" means the working directory of the image.
func (s Spec) RankDir() string {
	if s.Image == "" {
		return s.Workdir
	}
	if s.Container.Workdir != "" {
		return s.Container.Workdir
	}
	mounts, err := s.Mounted()
	if err != nil {
		return ""
	}
	for _, m := range mounts {
		if m.Source == m.Target && !m.Auto && (s.Workdir == m.Target || strings.HasPrefix(s.Workdir, m.Target+"/")) {
			return s.Workdir
		}
	}
	return ""
}

// ImageFile reports whether the name of an image is the path of an archive or of an OCI layout.
// Other names are references.
func ImageFile(image string) bool {
	if slices.ContainsFunc([]string{".tar", ".tar.gz", ".tgz", ".tar.zst"}, func(end string) bool { return strings.HasSuffix(image, end) }) {
		return true
	}
	return strings.HasPrefix(image, "/") || strings.HasPrefix(image, "./") || strings.HasPrefix(image, "../") || image == "." || image == ".."
}

// IDs returns the user and group IDs of User; ok is false if User has no IDs.
func (c Container) IDs() (ids [2]uint32, ok bool, err error) {
	if c.User == "" || c.User == ImageUser {
		return ids, false, nil
	}
	user, group, _ := strings.Cut(c.User, ":")
	for i, text := range []string{user, group} {
		if i == 1 && text == "" {
			text = user
		}
		id, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return ids, false, fmt.Errorf("the user %q of the containers is neither \"image\" nor UID:GID", c.User)
		}
		ids[i] = uint32(id)
	}
	return ids, true, nil
}
