package gpuwatch

import "strconv"

// xids are the names of driver errors that training jobs meet, by their numbers in the
// table of NVIDIA's catalogue "XID Errors".
var xids = map[int]string{
	13:  "graphics engine exception",
	31:  "GPU memory page fault",
	32:  "invalid or corrupted push buffer stream",
	38:  "driver firmware error",
	43:  "GPU stopped processing",
	45:  "preemptive cleanup, due to previous errors",
	46:  "GPU stopped processing",
	48:  "double bit ECC error",
	54:  "auxiliary power is not connected to the GPU board",
	61:  "internal micro-controller breakpoint",
	62:  "internal micro-controller halt",
	63:  "ECC page retirement or row remapping recorded",
	64:  "ECC page retirement or row remapping could not be recorded",
	68:  "video processor exception",
	69:  "graphics engine class error",
	74:  "NVLink error",
	79:  "GPU has fallen off the bus",
	92:  "high single bit ECC error rate",
	94:  "contained ECC error",
	95:  "uncontained ECC error",
	109: "context switch timeout",
	119: "GSP RPC timeout",
	120: "GSP error",
	121: "C2C link corrected error",
	140: "unrecovered ECC error",
	143: "GPU initialisation error",
	154: "GPU recovery action changed",
}

// xidText is the number of an XID and, where it is known, its name.
func xidText(number int) string {
	text := "XID " + strconv.Itoa(number)
	if name := xids[number]; name != "" {
		text += ", " + name
	}
	return text
}
