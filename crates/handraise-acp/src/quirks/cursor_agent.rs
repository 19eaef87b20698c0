//! `cursor-agent`. Known by its configured id alone: what it needs differently comes before it says who it is.
//!
//! It gets no `_meta` in `clientCapabilities` (AC-02).

/// Its configured id, or its command's name.
pub const ID: &str = "cursor-agent";
