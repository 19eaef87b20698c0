//! The upstream side in front of a server that the tests play themselves.

#[cfg(test)]
mod awaited;
#[cfg(test)]
mod ending;
#[cfg(test)]
mod left;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod server_stream;
#[cfg(test)]
mod unacknowledged;
#[cfg(test)]
mod unread;
