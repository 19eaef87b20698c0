//! The inbox over real sockets: HTTP, event streams, and a scripted holder on a real WebSocket.

#[cfg(test)]
mod access;
#[cfg(test)]
mod answers;
#[cfg(test)]
mod bounds;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod forged;
#[cfg(test)]
mod holders;
#[cfg(test)]
mod live;
#[cfg(test)]
mod owners;
#[cfg(test)]
mod presence;
#[cfg(test)]
mod provenance;
#[cfg(test)]
mod records;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod routes;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod time;
