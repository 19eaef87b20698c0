//! The server's thread: from the server to our stdout.
//!
//! An array is no frame of MCP. A server that writes one is understood all the same: each element is judged and goes on
//! as a line of its own, see [`handraise_mcp::frame::each_of_batch`]. The client gets every message byte for byte, and the
//! array around them is left out.

use std::{
    os::fd::AsFd,
    sync::{Arc, atomic::Ordering},
};

use handraise_mcp::{
    Now,
    envelope::{Out, Route},
    frame::{NoFrame, ServerFrame, each_of_batch, is_batch},
};
use handraise_transport::{
    clock::SystemClock,
    escape,
    frames::{Found, Frames, Place},
    limited::Limited,
};

use crate::{
    outlet::{Batch, Gone},
    overlong::{self, Overlong},
    shared::{Shared, Side, now},
};

/// How much of a line of noise is logged, in characters.
const SHOWN: usize = 300;

/// Reads the server until its end, or until nobody listens.
pub(crate) fn run(shared: &Arc<Shared>, stdout: impl AsFd, max_frame: usize) {
    let mut reading = Reading {
        shared,
        batch: Batch::default(),
        out: Vec::new(),
        now: now(),
        noise: Limited::new(SystemClock::shared()),
        has_queued: false,
    };
    let mut frames = Frames::new(stdout, max_frame);
    let outlet = shared.outlet(Side::Client);
    loop {
        if std::mem::take(&mut reading.has_queued) {
            shared.wait_for_room(Side::Upstream);
        }
        shared.upstream_is_silent.store(true, Ordering::Relaxed);
        // What fails cannot be read on: that is the end.
        let more = frames.fill().unwrap_or(false);
        shared.upstream_is_silent.store(false, Ordering::Relaxed);
        reading.now = now();
        let mut pen = outlet.pen();
        while let Some(found) = frames.next() {
            match found {
                Found::Frame(place) => reading.frame(frames.bytes(place.frame.clone()), &place),
                Found::TooLong(head) => reading.too_long(&head, max_frame),
            }
        }
        let mut written = reading.batch.write(&mut pen, |place| frames.bytes(place));
        if written.is_ok() {
            written = shared.drain(Side::Client, &mut pen, &mut reading.batch);
        }
        drop(pen);
        if written == Err(Gone) {
            shared.gone(Side::Client);
        }
        if !more {
            break;
        }
    }
    shared.advance(|progress| progress.upstream_ended = true);
}

struct Reading<'a> {
    shared: &'a Arc<Shared>,
    batch: Batch,
    out: Vec<Out>,
    /// When what is judged now was read.
    now: Now,
    noise: Limited,
    /// Something was queued for the server, which may not read.
    has_queued: bool,
}

impl Reading<'_> {
    fn frame(&mut self, bytes: &[u8], place: &Place) {
        let Ok(frame) = self.shared.process.read_server_frame(bytes) else {
            self.other(bytes);
            return;
        };
        if self.judge(&frame) == Route::Forward {
            self.batch.forward(place.line.clone());
            if place.line.end == place.frame.end {
                // The last line of a stream may lack its end.
                self.batch.add(b"\n".to_vec());
            }
        }
    }

    /// A line that is no frame.
    fn other(&mut self, bytes: &[u8]) {
        if !is_batch(bytes) {
            self.noise(bytes);
            return;
        }
        let read = each_of_batch(bytes, |element| match self.shared.process.read_server_frame(element) {
            Ok(frame) => {
                if self.judge(&frame) == Route::Forward {
                    self.batch.add([element, b"\n"].concat());
                }
            }
            Err(NoFrame) => self.noise(element),
        });
        if read == Err(NoFrame) {
            self.noise(bytes);
        }
    }

    /// Lets the envelope decide about a frame, and does the rest of what it says.
    fn judge(&mut self, frame: &ServerFrame<'_>) -> Route {
        let mut state = self.shared.lock();
        state.take_along(Side::Client, &mut self.batch);
        let route = state.envelope.upstream_frame(frame, self.now, &mut self.out);
        let carried = state.carry_out(Some((Side::Client, &mut self.batch)), &mut self.out);
        self.has_queued |= carried.queued;
        // Somebody waits for the last open call.
        let wakes = state.progress.client_ended && state.envelope.open_requests() == 0;
        self.shared.finish(state, &carried);
        if wakes {
            self.shared.waker.wake();
        }
        route
    }

    fn too_long(&mut self, head: &[u8], limit: usize) {
        tracing::warn!(limit, "a frame of the MCP server is too long and is thrown away");
        match overlong::read(head) {
            // The client hears that no answer will come.
            Overlong::Response(id) => {
                let reply = overlong::reply(&id, limit);
                if let Ok(frame) = self.shared.process.read_server_frame(&reply)
                    && self.judge(&frame) == Route::Forward
                {
                    self.batch.add([&reply[..], b"\n"].concat());
                }
            }
            Overlong::Request(id) => {
                self.out.push(Out::ToUpstream(overlong::reply(&id, limit)));
                self.has_queued = true;
                self.shared.carry_out(self.shared.lock(), &mut self.out);
            }
            Overlong::Unknown => {}
        }
    }

    /// What servers print beside the protocol. It may hold anything, so that only debug shows it.
    fn noise(&mut self, bytes: &[u8]) {
        if let Some(left_out) = self.noise.admit() {
            tracing::warn!(
                left_out,
                bytes = bytes.len(),
                "the MCP server wrote a line on stdout that is no frame; it is left out"
            );
            tracing::debug!("the line: {}", escape::shortened(&String::from_utf8_lossy(bytes), SHOWN));
        }
    }
}
