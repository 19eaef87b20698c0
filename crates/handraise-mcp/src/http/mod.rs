//! What Streamable HTTP adds to frames: headers that mirror a request, and streams of events (mcp.md §1).
//!
//! - [`headers`]: which headers a request carries, and whether they say what its body says (S3).
//! - [`sse`]: reading and writing streams of events.

pub mod headers;
pub mod sse;
