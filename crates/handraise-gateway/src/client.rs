//! The client's thread: from our stdin to the server.

use std::{os::fd::AsFd, sync::Arc};

use handraise_mcp::{
    Now,
    envelope::{Out, Route},
    frame::{ClientFrame, Malformed},
};
use handraise_transport::frames::{Found, Frames, Place};

use crate::{
    outlet::{Batch, Gone},
    overlong::{self, Overlong},
    shared::{Shared, Side, now},
};

/// Reads the client until its end.
pub(crate) fn run(shared: &Arc<Shared>, stdin: impl AsFd, max_frame: usize) {
    let mut reading =
        Reading { shared, batch: Batch::default(), out: Vec::new(), now: now(), has_queued: false };
    let mut frames = Frames::new(stdin, max_frame);
    let outlet = shared.outlet(Side::Upstream);
    loop {
        if std::mem::take(&mut reading.has_queued) {
            shared.wait_for_room(Side::Client);
        }
        // What fails cannot be read on: that is the end.
        let more = frames.fill().unwrap_or(false);
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
            written = shared.drain(Side::Upstream, &mut pen, &mut reading.batch);
        }
        drop(pen);
        if written == Err(Gone) {
            shared.gone(Side::Upstream);
        }
        if !more {
            break;
        }
    }
    let mut state = shared.lock();
    state.envelope.client_closed(now(), &mut reading.out);
    shared.carry_out(state, &mut reading.out);
    shared.wait_for_guarded();
    let mut pen = outlet.pen();
    let _ = shared.drain(Side::Upstream, &mut pen, &mut reading.batch);
    pen.close();
    drop(pen);
    shared.advance(|progress| progress.client_ended = true);
}

struct Reading<'a> {
    shared: &'a Arc<Shared>,
    batch: Batch,
    out: Vec<Out>,
    /// When what is judged now was read.
    now: Now,
    /// Something was queued for the client, who may not read.
    has_queued: bool,
}

impl Reading<'_> {
    fn frame(&mut self, bytes: &[u8], place: &Place) {
        match ClientFrame::read_line(bytes) {
            Ok(frame) => {
                if self.judge(&frame) == Route::Forward {
                    self.batch.forward(place.line.clone());
                    if place.line.end == place.frame.end {
                        // The last line of a stream may lack its end.
                        self.batch.add(b"\n".to_vec());
                    }
                }
            }
            Err(malformed) => {
                tracing::warn!(problem = %malformed.problem, "a frame of the client is refused (S3)");
                self.refuse(&malformed);
            }
        }
    }

    /// Lets the envelope decide about a frame, and does the rest of what it says.
    fn judge(&mut self, frame: &ClientFrame<'_>) -> Route {
        let mut state = self.shared.lock();
        state.take_along(Side::Upstream, &mut self.batch);
        let route = state.envelope.client_frame(frame, &self.shared.caller, self.now, &mut self.out);
        let carried = state.carry_out(Some((Side::Upstream, &mut self.batch)), &mut self.out);
        self.has_queued |= carried.queued;
        self.shared.finish(state, &carried);
        route
    }

    fn too_long(&mut self, head: &[u8], limit: usize) {
        tracing::warn!(limit, "a frame of the client is too long and is thrown away");
        match overlong::read(head) {
            Overlong::Request(id) => {
                self.out.push(Out::ToClient { for_call: None, frame: overlong::reply(&id, limit) });
                self.has_queued = true;
                self.shared.carry_out(self.shared.lock(), &mut self.out);
            }
            Overlong::Response(id) => {
                // To a question of ours, it is an answer that cannot be read.
                let unreadable = overlong::without_answer(&id);
                if let Ok(frame) = ClientFrame::read(&unreadable)
                    && self.judge(&frame) == Route::Forward
                {
                    // The server asked; it hears that no answer will come.
                    self.batch.add([&overlong::reply(&id, limit)[..], b"\n"].concat());
                }
            }
            Overlong::Unknown => {}
        }
    }

    /// Lets the envelope answer what goes no further.
    fn refuse(&mut self, malformed: &Malformed) {
        let mut state = self.shared.lock();
        state.take_along(Side::Upstream, &mut self.batch);
        state.envelope.client_malformed(malformed, self.now, &mut self.out);
        let carried = state.carry_out(Some((Side::Upstream, &mut self.batch)), &mut self.out);
        self.has_queued |= carried.queued;
        self.shared.finish(state, &carried);
    }
}
