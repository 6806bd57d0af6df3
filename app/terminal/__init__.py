"""What a terminal shows: messages, progress bars, a diagnosis as plain text."""
