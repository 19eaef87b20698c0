//! The open POSTs of a session: by the number of their stream, by the id of their request, and by the token of its progress.

use handraise_mcp::frame::{ById, ClientFrame, Few, Id, RequestId};

use super::{known::Tells, outlet::Outlet, params::Params};

/// The longest token whose progress is brought to its call, in bytes: tokens are held for as long as their calls are open.
pub(super) const LONGEST_TOKEN: usize = 1024;

/// The open POSTs.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// By the number of their stream: the highest is the newest.
    open: Few<u64, Call>,
    by_id: ById<u64>,
    by_token: ById<u64>,
}

/// An open POST.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: RequestId,
    pub(super) token: Option<RequestId>,
    pub(super) outlet: Outlet,
    pub(super) is_initialize: bool,
    pub(super) params: Params,
    /// What its answer tells of the server.
    pub(super) tells: Option<Tells>,
    /// No client has sent it.
    pub(super) is_ours: bool,
    /// The last question of ours on its stream. Whether that has been answered is not known here.
    pub(super) question: Option<RequestId>,
}

/// The token under which a request wants to hear of its progress.
pub(super) fn token<'a>(frame: &ClientFrame<'a>) -> Option<Id<'a>> {
    frame.progress_token().map(|(token, _)| token).filter(|token| token.raw().len() <= LONGEST_TOKEN)
}

impl Calls {
    /// Takes a call in, under the number of its stream.
    pub(super) fn insert(&mut self, stream: u64, call: Call) {
        if let Some(token) = &call.token {
            self.by_token.insert(token.borrow(), stream);
        }
        self.by_id.insert(call.id.borrow(), stream);
        self.open.insert(stream, call);
    }

    pub(super) fn remove(&mut self, stream: u64) -> Option<Call> {
        let call = self.open.remove(&stream)?;
        self.by_id.remove(call.id.borrow());
        if let Some(token) = &call.token
            && self.by_token.get(token.borrow()) == Some(&stream)
        {
            self.by_token.remove(token.borrow());
        }
        Some(call)
    }

    pub(super) fn get(&self, stream: u64) -> Option<&Call> {
        self.open.get(&stream)
    }

    pub(super) fn get_mut(&mut self, stream: u64) -> Option<&mut Call> {
        self.open.get_mut(&stream)
    }

    /// The stream of the request that is open under this id.
    pub(super) fn stream_of(&self, id: Id<'_>) -> Option<u64> {
        self.by_id.get(id).copied()
    }

    /// The stream on which the progress under this token is told.
    pub(super) fn stream_of_token(&self, token: Id<'_>) -> Option<u64> {
        self.by_token.get(token).copied()
    }

    /// The newest stream on which something can be said.
    pub(super) fn newest(&self) -> Option<u64> {
        self.open.last(|call| call.outlet.takes_events()).copied()
    }

    /// Every call, with the number of its stream, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Call)> {
        self.open.iter().map(|(stream, call)| (*stream, call))
    }

    /// The same, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut Call)> {
        self.open.iter_mut().map(|(stream, call)| (*stream, call))
    }

    /// Takes all of them out, in the order of their streams.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Call> + use<> {
        std::mem::take(self).open.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s37_tokens_that_are_kept_are_bounded() {
        let kept = |length: usize| {
            let (long, name) = ("x".repeat(length), "progressToken");
            let frame = format!(r#"{{"id":1,"method":"x","params":{{"_meta":{{"{name}":"{long}"}}}}}}"#);
            token(&ClientFrame::read(frame.as_bytes()).unwrap()).is_some()
        };
        assert!(kept(1) && kept(1022) && !kept(1023));
    }
}
