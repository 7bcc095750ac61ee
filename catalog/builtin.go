package catalog

// Names of the arguments of the builtin "output".
const (
	OutputHash   = "hash"
	OutputOffset = "offset"
	OutputLength = "length"
)

const maxOutputLength = 1 << 20

// readBuiltin gives a builtin its schema and refuses the keys of a command.
func (l *loader) readBuiltin(tool *Tool, t *table) {
	for _, key := range []string{"command", "params", "schema", "schema_file", "stdin"} {
		if _, at, ok := t.get(key); ok {
			at.fail("does not fit a builtin, which starts no program and brings its own parameters")
		}
	}
	if tool.Description == "" {
		tool.Description = "Read a part of an output that an earlier call of this session left out of its reply, by the output_hash or stderr_hash of that reply."
	}
	tool.params = map[string]*param{
		OutputHash:   {types: []string{"string"}, required: true},
		OutputOffset: {types: []string{"integer"}},
		OutputLength: {types: []string{"integer"}},
	}
	l.setSchema(tool, t.here(), map[string]any{
		"type": "object",
		"properties": map[string]any{
			OutputHash: map[string]any{
				"type": "string", "pattern": "^[0-9a-f]{64}$",
				"description": "output_hash or stderr_hash of a call of this session",
			},
			OutputOffset: map[string]any{
				"type": "integer", "minimum": 0, "maximum": int64(1)<<53 - 1, "default": 0,
				"description": "first byte to read",
			},
			OutputLength: map[string]any{
				"type": "integer", "minimum": 1, "maximum": max(maxOutputLength, tool.PreviewBytes), "default": tool.PreviewBytes,
				"description": "number of bytes to read at most",
			},
		},
		"required":             []string{OutputHash},
		"additionalProperties": false,
	}, false)
}
