//! Our stdin, as the way from a client, and how far the client may be ahead of the server.

use std::{io, sync::Arc, thread};

use bytes::Bytes;
use handraise_transport::{
    ends::Ends,
    frames::{Found, Frames},
};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
};

use super::stdio::{MOST_BACKLOG, own};

/// How long a frame may be that is taken while [`MOST_BACKLOG`] waits for the server, such as the cancel of a call that does
/// not get there.
const SHORT: usize = 16 * 1024;
/// How much is taken of those meanwhile.
const FOR_SHORT: usize = 1024 * 1024;
/// Frames of more bytes are read ahead one at a time.
const LARGE: usize = 1024 * 1024;

/// What comes from the client.
pub(super) enum FromClient {
    Frame {
        bytes: Bytes,
        /// Only one frame that is [`LARGE`] is here at a time.
        _place: Option<OwnedSemaphorePermit>,
    },
    TooLong(Ends),
}

impl FromClient {
    /// How much it adds to what waits for the server, in bytes.
    pub(super) fn length(&self) -> usize {
        if let Self::Frame { bytes, .. } = self { bytes.len() } else { 0 }
    }
}

/// How far a client is ahead of the server.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// How many bytes of short frames were taken since so much waits.
    beyond: usize,
}

impl Ahead {
    /// Whether a frame of so many bytes may go on while so many wait for the server.
    pub(super) fn lets_go(&mut self, length: usize, backlog: usize) -> bool {
        if backlog < MOST_BACKLOG {
            self.beyond = 0;
            return true;
        }
        let goes = length <= SHORT && self.beyond + length <= FOR_SHORT;
        self.beyond += if goes { length } else { 0 };
        goes
    }
}

/// Our stdin, by a thread of its own. The channel ends with it.
pub(super) fn read(max_frame: usize) -> io::Result<mpsc::Receiver<FromClient>> {
    /// How many frames are read ahead.
    const AHEAD: usize = 8;
    let stdin = own(io::stdin())?;
    let (sender, receiver) = mpsc::channel(AHEAD);
    let runtime = Handle::current();
    let large = Arc::new(Semaphore::new(1));
    let reading = move || {
        let mut frames = Frames::new(stdin, max_frame);
        loop {
            // What fails cannot be read on: that is the end.
            let more = frames.fill().unwrap_or(false);
            while let Some(found) = frames.next() {
                let found = match found {
                    Found::Frame(place) => {
                        let frame = frames.bytes(place.frame);
                        // The one before it has been taken.
                        let place = (frame.len() > LARGE)
                            .then(|| runtime.block_on(Arc::clone(&large).acquire_owned()).ok());
                        FromClient::Frame { bytes: Bytes::copy_from_slice(frame), _place: place.flatten() }
                    }
                    Found::TooLong(ends) => FromClient::TooLong(ends),
                };
                if sender.blocking_send(found).is_err() {
                    return;
                }
            }
            if !more {
                return;
            }
        }
    };
    thread::Builder::new().name("stdin".to_owned()).spawn(reading)?;
    Ok(receiver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s37_while_too_much_waits_so_much_of_what_is_short_goes_on_and_nothing_else() {
        let mut ahead = Ahead::default();
        assert!(ahead.lets_go(64 << 20, MOST_BACKLOG - 1));
        let long = 80 << 20;
        for _ in 0..2 {
            let short = std::iter::from_fn(|| ahead.lets_go(SHORT, long).then_some(SHORT));
            assert_eq!(short.sum::<usize>(), FOR_SHORT);
            assert!(!ahead.lets_go(SHORT + 1, long) && !ahead.lets_go(1, MOST_BACKLOG));
            // As soon as little enough waits, all goes on.
            assert!(ahead.lets_go(SHORT + 1, 0));
        }
    }
}
