//! Where frames for the client go: to the streams of a legacy session, or to one of many modern requests.

use handraise_mcp::frame::{Id, RequestId, ServerFrame};

use super::{params::Params, pieces::Came, session, shared};

/// Where frames for the client go.
#[derive(Debug)]
pub(crate) enum Desk {
    /// To the streams of a legacy session.
    Session(Box<session::Desk>),
    /// To one of many modern requests.
    Shared(shared::Desk),
}

/// A request of ours, or of the server, that nobody can be shown. It is told by its id.
#[derive(Debug)]
pub(crate) struct Unshown(pub(crate) RequestId);

impl Desk {
    /// Takes a frame that the envelope made.
    pub(super) fn deliver(&mut self, for_call: Option<&RequestId>, frame: Vec<u8>) -> Result<(), Unshown> {
        match self {
            Self::Session(desk) => desk.deliver(for_call, frame),
            Self::Shared(desk) => {
                desk.deliver(for_call, frame);
                Ok(())
            }
        }
    }

    /// Takes a frame of the server that goes on as it is; returns what the server is answered, where nobody else can.
    pub(super) fn forward(&mut self, frame: &ServerFrame<'_>, came: Came<'_>) -> Option<Vec<u8>> {
        match self {
            Self::Session(desk) => desk.forward(frame, came),
            Self::Shared(desk) => desk.forward(frame, came),
        }
    }

    /// The headers that an open request came with, for a server at a URL.
    pub(super) fn params(&self, id: Id<'_>) -> Params {
        match self {
            Self::Session(desk) => desk.params(id),
            Self::Shared(desk) => desk.params(id),
        }
    }

    /// Lets a second pass.
    pub(super) fn tick(&mut self) {
        match self {
            Self::Session(desk) => desk.tick(),
            Self::Shared(desk) => desk.tick(),
        }
    }

    /// Ends every stream.
    pub(super) fn close(&mut self) {
        match self {
            Self::Session(desk) => desk.close(),
            Self::Shared(desk) => desk.close(),
        }
    }

    pub(super) fn is_attended(&self) -> bool {
        match self {
            Self::Session(desk) => desk.is_attended(),
            Self::Shared(desk) => desk.is_attended(),
        }
    }
}
