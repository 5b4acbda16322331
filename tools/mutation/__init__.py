"""The parts of tools/mutate_sources."""
