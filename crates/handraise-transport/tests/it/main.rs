//! Real processes under a real supervisor (S35).

#[cfg(test)]
mod supervise;
