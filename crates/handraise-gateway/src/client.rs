//! What the client sends: from our stdin to the server.

use handraise_mcp::{
    envelope::{Out, Route},
    frame::{
        ClientFrame, Malformed,
        overlong::{self, Overlong},
    },
};
use handraise_transport::{
    ends::Ends,
    frames::{Found, Place},
};

use crate::run::Gateway;

impl Gateway {
    /// Reads the client once, if it may, and sends on what that brought; whether something has come.
    pub(crate) fn read_client(&mut self) -> bool {
        if !self.reads_client() || !self.up.fill() {
            return false;
        }
        while let Some(found) = self.up.next() {
            match found {
                Found::Frame(place) => self.client_frame(&place),
                Found::TooLong(ends) => self.client_too_long(&ends),
            }
        }
        if self.up.has_ended {
            self.envelope.client_closed(self.now, &mut self.out);
            self.carry_out();
        }
        self.flush();
        true
    }

    fn client_frame(&mut self, place: &Place) {
        match ClientFrame::read_line(self.up.bytes(place)) {
            Ok(frame) => {
                let route = self.envelope.client_frame(&frame, &self.caller, self.now, &mut self.out);
                self.carry_out();
                if route == Route::Forward {
                    self.up.forward(place);
                }
            }
            Err(malformed) => self.refuse(&malformed),
        }
    }

    /// Lets the envelope answer what goes no further.
    fn refuse(&mut self, malformed: &Malformed) {
        tracing::warn!(problem = %malformed.problem, "a frame of the client is refused (S3)");
        self.envelope.client_malformed(malformed, self.now, &mut self.out);
        self.carry_out();
    }

    fn client_too_long(&mut self, ends: &Ends) {
        let limit = self.max_frame;
        tracing::warn!(limit, "a frame of the client is too long and is thrown away");
        match overlong::read(&ends.head, &ends.tail) {
            Overlong::Request(id) => {
                self.out.push(Out::ToClient { for_call: None, frame: overlong::reply(&id, limit) });
                self.carry_out();
            }
            Overlong::Response(Some(id)) => {
                // To a question of ours, it is an answer that cannot be read.
                let unreadable = overlong::without_answer(&id);
                let Ok(frame) = ClientFrame::read(&unreadable) else { return };
                let route = self.envelope.client_frame(&frame, &self.caller, self.now, &mut self.out);
                if route == Route::Forward {
                    // The server asked; it hears that no answer will come.
                    self.out.push(Out::ToUpstream(overlong::reply(&id, limit)));
                }
                self.carry_out();
            }
            Overlong::Response(None) | Overlong::Unknown => {}
        }
    }
}
