"""JSON routes and pages: parses requests, asks `knowledge`, shapes the answers; knows no SQL."""
