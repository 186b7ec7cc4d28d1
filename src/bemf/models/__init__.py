"""Models, a file each."""
