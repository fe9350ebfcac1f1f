package job

// Locality says how close to each other the GPUs of a gang are, or must be.
type Locality string

// The levels of locality, the closest first.
const (
	LocalityIsland Locality = "island" // the best-connected GPUs of one host; see topology.Choice
	LocalityHost   Locality = "host"   // one host
	LocalityRack   Locality = "rack"   // hosts of one rack
	LocalityAny    Locality = "any"
)

// Localities lists every level, the closest first.
func Localities() []Locality {
	return []Locality{LocalityIsland, LocalityHost, LocalityRack, LocalityAny}
}
