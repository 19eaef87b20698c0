//! Where frames for the client go: to the streams of a legacy session, or to one of many modern requests.

use std::sync::Arc;

use handraise_mcp::{
    envelope::Caller,
    frame::{Id, RequestId, ServerFrame},
};

use bytes::Bytes;

use super::{
    known::{Held, Known, Refused},
    params::Params,
    pieces::Came,
    session, shared,
};

/// Where frames for the client go.
#[derive(Debug)]
pub(crate) enum Desk {
    /// To the streams of a legacy session.
    Session(Box<session::Desk>),
    /// To one of many modern requests.
    Shared(shared::Desk),
}

/// What has become possible for requests that waited until more was known of the server.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    /// What the server is to be asked, by whom the desk knows it.
    pub(crate) question: Option<(u64, Bytes)>,
    /// Requests that go on.
    pub(crate) requests: Vec<Held>,
    /// How many were refused for their headers.
    pub(crate) mismatches: u64,
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

    /// An answer under the id that its request has here, where the server has respelled it.
    pub(super) fn respelled(&self, frame: &ServerFrame<'_>) -> Option<Bytes> {
        match self {
            // These ids are the client's own, and it knows `1` and `"1"` apart.
            Self::Session(_) => None,
            Self::Shared(desk) => desk.respelled(frame),
        }
    }

    /// The headers that an open request came with, for a server at a URL.
    pub(super) fn params(&self, id: Id<'_>) -> Params {
        match self {
            Self::Session(desk) => desk.params(id),
            Self::Shared(desk) => desk.params(id),
        }
    }

    /// What is known of the server.
    pub(super) fn known(&mut self) -> &mut Known {
        match self {
            Self::Session(desk) => desk.known(),
            Self::Shared(desk) => desk.known(),
        }
    }

    /// What has become possible for those who wait. Those who are refused have their answer.
    pub(super) fn due(&mut self) -> Option<Ready> {
        let due = self.known().due()?;
        let mut ready = Ready { requests: due.requests, ..Ready::default() };
        for (key, refused) in due.refused {
            ready.mismatches += u64::from(matches!(refused, Refused::Mismatch(_)));
            match self {
                Self::Session(desk) => desk.refuse(key, &refused),
                Self::Shared(desk) => desk.refuse(key, &refused),
            }
        }
        ready.question = due.question.and_then(|question| match self {
            Self::Session(desk) => desk.ask(&question),
            Self::Shared(desk) => desk.ask(&question),
        });
        Some(ready)
    }

    /// Whose an open request is.
    pub(super) fn caller_of(&self, key: u64) -> Option<Arc<Caller>> {
        match self {
            Self::Session(desk) => desk.caller_of(key),
            Self::Shared(desk) => desk.caller_of(key),
        }
    }

    /// Lets a second pass. Returns questions of ours that nobody can read any more.
    pub(super) fn tick(&mut self) -> Vec<Unshown> {
        match self {
            Self::Session(desk) => desk.tick(),
            Self::Shared(desk) => {
                desk.tick();
                Vec::new()
            }
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
