"""POST ROOM: the only room that speaks to GitHub. Pages in, records to the archive, then derive."""
