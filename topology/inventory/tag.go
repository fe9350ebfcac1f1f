package inventory

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// knownTags are the tags that an inventory may write before a value of each kind, as
// in a job file.
var knownTags = map[yaml.Kind][]string{
	yaml.ScalarNode:   {"!", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!binary"},
	yaml.MappingNode:  {"!", "!!map"},
	yaml.SequenceNode: {"!", "!!seq"},
}

// tags reports every written tag of a document that is none of those.
func (y *yamlReader) tags(n *yaml.Node) {
	if n == nil || y.enough() {
		return
	}
	if n.Style&yaml.TaggedStyle != 0 && !slices.Contains(knownTags[n.Kind], n.ShortTag()) {
		y.bad(n.Line, faultf("take the tag away", "the tag %q is not allowed here in an inventory", n.Tag))
	}
	for _, inner := range n.Content {
		y.tags(inner)
	}
}
