//! The store against real SQLite files.

#[cfg(test)]
mod backup;
#[cfg(test)]
mod counts;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod life;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod model;
#[cfg(test)]
mod open;
#[cfg(test)]
mod records;
#[cfg(test)]
mod support;
