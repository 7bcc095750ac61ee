package rpc

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"toolrun/catalog"
)

// listed turns the catalog's tools into what tools/list shows of them, each with the catalog's own bytes as its schema.
func listed(tools []*catalog.Tool) []*mcp.Tool {
	list := make([]*mcp.Tool, len(tools))
	for i, t := range tools {
		readOnly, destructive, openWorld := t.Annotations()
		list[i] = &mcp.Tool{
			Name:        t.Name,
			Title:       t.Title,
			Description: t.Description,
			InputSchema: t.Schema,
			Annotations: &mcp.ToolAnnotations{
				Title:           t.Title,
				ReadOnlyHint:    readOnly,
				DestructiveHint: &destructive,
				OpenWorldHint:   &openWorld,
			},
		}
	}
	return list
}
