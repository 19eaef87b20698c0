//! The commands, one file each.

pub(crate) mod agent;
pub(crate) mod ask;
pub(crate) mod backup;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod hook;
pub(crate) mod inbox;
pub(crate) mod mcp;
pub(crate) mod report;
pub(crate) mod token;
pub(crate) mod tool;
pub(crate) mod up;
