package layers

// tooLarge has what is still beyond its limit, with its size as it was seen last.
var tooLarge = map[string]int{}
