"""FRONT DESK: JSON routes and pages. Parses, asks `knowledge`, shapes the reply; knows no SQL."""
