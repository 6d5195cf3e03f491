"""Newton-type methods for one dense problem: minimum map, interior point."""
