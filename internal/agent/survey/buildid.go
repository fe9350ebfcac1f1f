package survey

import (
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// buildOf returns a text that differs between builds of a library. It has the version in the name of the library's
// file, and the beginning of the library's build ID, as in "2.18.5 build 9c1f03ab".
func buildOf(library string) string {
	var words []string
	if real, err := filepath.EvalSymlinks(library); err == nil {
		library = real
	}
	if _, version, ok := strings.Cut(filepath.Base(library), ".so."); ok {
		words = append(words, version)
	}
	if id := buildID(library); id != "" {
		words = append(words, "build "+id[:min(len(id), 8)])
	}
	if len(words) == 0 {
		if info, err := os.Stat(library); err == nil {
			words = append(words, strconv.FormatInt(info.Size(), 10)+" bytes")
		}
	}
	return strings.Join(words, " ")
}

// buildID returns the build ID that the linker gave to a file, in hexadecimal. It returns "" if the file has none.
func buildID(path string) string {
	file, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	section := file.Section(".note.gnu.build-id")
	if section == nil || section.Size > 4096 {
		return ""
	}
	note, err := section.Data()
	if err != nil {
		return ""
	}
	return noteID(note, file.ByteOrder)
}

// noteID returns the build ID in an ELF note of the type NT_GNU_BUILD_ID. Such a note has the size of the name, the
// size of the content, the type, the name "GNU" and the content. See elf(5).
func noteID(note []byte, order binary.ByteOrder) string {
	const head = 12 + len("GNU\x00")
	if len(note) < head || order.Uint32(note) != 4 || order.Uint32(note[8:]) != 3 || string(note[12:head]) != "GNU\x00" {
		return ""
	}
	size := order.Uint32(note[4:])
	if uint64(size) > uint64(len(note)-head) {
		return ""
	}
	return hex.EncodeToString(note[head : head+int(size)])
}
