"""The paper: what its published code did, kept away from the clean models."""
