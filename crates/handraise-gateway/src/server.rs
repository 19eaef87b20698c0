//! What the server says: from its stdout to ours.
//!
//! An array is no frame of MCP. A server that writes one is understood all the same: each element is judged and goes on
//! as a line of its own, see [`handraise_mcp::frame::each_of_batch`]. The client gets every message byte for byte, and the
//! array around them is left out.

use handraise_mcp::{
    envelope::{Out, Route},
    frame::{
        NoFrame, each_of_batch, is_batch,
        overlong::{self, Overlong},
    },
};
use handraise_transport::{
    ends::Ends,
    escape,
    frames::{Found, Place},
};

use crate::run::Gateway;

/// How much of a line of noise is logged, in characters.
const SHOWN: usize = 300;

impl Gateway {
    /// Reads the server once, if it may, and sends on what that brought; whether something has come.
    pub(crate) fn read_server(&mut self) -> bool {
        if !self.reads_server() || !self.down.fill() {
            return false;
        }
        while let Some(found) = self.down.next() {
            match found {
                Found::Frame(place) => self.server_frame(&place),
                Found::TooLong(ends) => self.server_too_long(&ends),
            }
        }
        self.flush();
        true
    }

    fn server_frame(&mut self, place: &Place) {
        let bytes = self.down.bytes(place);
        match self.process.read_server_frame(bytes) {
            Ok(frame) => {
                let route = self.envelope.upstream_frame(&frame, self.now, &mut self.out);
                self.carry_out();
                if route == Route::Forward {
                    self.down.forward(place);
                }
            }
            Err(NoFrame) if is_batch(bytes) => {
                let batch = bytes.to_vec();
                self.batch(&batch);
            }
            Err(NoFrame) => {
                let shown = shown(bytes);
                self.noise(bytes.len(), &shown);
            }
        }
    }

    /// Takes an array apart.
    fn batch(&mut self, bytes: &[u8]) {
        let read = each_of_batch(bytes, |element| self.say(element));
        if read == Err(NoFrame) {
            self.noise(bytes.len(), &shown(bytes));
        }
    }

    /// Judges what is no line of the server's, and sends it on if it may.
    fn say(&mut self, bytes: &[u8]) {
        let Ok(frame) = self.process.read_server_frame(bytes) else {
            self.noise(bytes.len(), &shown(bytes));
            return;
        };
        let route = self.envelope.upstream_frame(&frame, self.now, &mut self.out);
        if route == Route::Forward {
            self.out.push(Out::ToClient { for_call: None, frame: bytes.to_vec() });
        }
        self.carry_out();
    }

    fn server_too_long(&mut self, ends: &Ends) {
        let limit = self.max_frame;
        tracing::warn!(limit, "a frame of the MCP server is too long and is thrown away");
        match overlong::read(&ends.head, &ends.tail) {
            // The client hears that no answer will come.
            Overlong::Response(Some(id)) => self.say(&overlong::reply(&id, limit)),
            Overlong::Request(id) => {
                self.out.push(Out::ToUpstream(overlong::reply(&id, limit)));
                self.carry_out();
            }
            Overlong::Response(None) | Overlong::Unknown => {}
        }
    }

    /// What servers print beside the protocol. It may hold anything, so that only debug shows it.
    fn noise(&mut self, bytes: usize, shown: &str) {
        if let Some(left_out) = self.noise.admit() {
            tracing::warn!(
                left_out,
                bytes,
                "the MCP server wrote a line on stdout that is no frame; it is left out"
            );
            tracing::debug!("the line: {shown}");
        }
    }
}

fn shown(bytes: &[u8]) -> String {
    // A character has at most four bytes.
    let beginning = &bytes[..bytes.len().min(4 * SHOWN)];
    escape::shortened(&String::from_utf8_lossy(beginning), SHOWN)
}
