"""Terminal output: messages, logging, progress bars, diagnoses, the output of a wrapped command."""
