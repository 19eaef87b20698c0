//! The holder: an engine on one end of the holder stream.
