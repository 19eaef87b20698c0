//! `handraise agent` without its command line: real processes, the scripted agent on the other side.

#[cfg(test)]
mod alone;
#[cfg(test)]
mod support;
