"""READING ROOM: text in, facts out. Pure: no disk but its own lists, no database, no network."""
