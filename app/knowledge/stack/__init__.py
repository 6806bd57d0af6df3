"""A user's stack (vLLM version, GPU, model, arguments) and the stored failures that affect it."""
