package process

var ErrEnding = errEnding

const HelperBytes = helperBytes
