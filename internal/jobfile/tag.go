package jobfile

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// knownTags are the tags that a file may write before a value of each kind; ! alone
// means no type. Others ask for types of another program, whose values a job file
// does not have.
var knownTags = map[yaml.Kind][]string{
	yaml.ScalarNode:   {"!", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!binary"},
	yaml.MappingNode:  {"!", "!!map"},
	yaml.SequenceNode: {"!", "!!seq"},
}

// tags reports every written tag of a document that is none of those. What an alias
// stands for is looked at where it is written.
func (r *reader) tags(n *yaml.Node) {
	if n == nil {
		return
	}
	if n.Style&yaml.TaggedStyle != 0 && !slices.Contains(knownTags[n.Kind], n.ShortTag()) {
		r.bad(n, faultf("take the tag away", "the tag %s is not allowed here in a job file", quote(n.Tag)))
	}
	for _, inner := range n.Content {
		r.tags(inner)
	}
}
