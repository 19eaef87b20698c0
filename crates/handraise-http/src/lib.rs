//! MCP over Streamable HTTP.
//!
//! Frames travel as the bytes that came. What they mean is the business of [`handraise_mcp::envelope`]; this crate knows
//! requests, streams, sessions and headers.
//!
//! - `front`: the side that listens: callers, sessions, streams (mcp.md §1, S6, S10, S37).
//! - `upstream`: the side that dials an MCP server at a URL.

mod budget;
pub mod front;
mod now;
pub mod upstream;
