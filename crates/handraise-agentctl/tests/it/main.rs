//! `handraise agent` without its command line: real processes, the scripted agent on the other side.

#[cfg(test)]
mod alone;
#[cfg(test)]
mod asks;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod flag;
#[cfg(test)]
mod inbox;
#[cfg(test)]
mod killed;
#[cfg(test)]
mod support;
#[cfg(test)]
mod terminals;
