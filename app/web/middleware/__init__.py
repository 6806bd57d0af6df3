"""ASGI middleware applied to every request."""
