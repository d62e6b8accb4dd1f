"""Blocks of immutable objects on the local disk."""
