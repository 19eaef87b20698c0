//! Child processes, bounded lines, clocks and ids.
