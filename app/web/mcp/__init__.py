"""The MCP server, over HTTP and stdio."""
