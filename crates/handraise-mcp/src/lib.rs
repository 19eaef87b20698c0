//! The Model Context Protocol as handraise reads it, and the envelope around a tool call.
//!
//! Everything here is pure: frames, both clocks' readings and random bytes come in, frames and records come out. The
//! gateway and the library drive the same code.
