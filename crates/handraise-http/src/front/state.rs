//! What a link decides under its lock: the envelope, the streams of its clients, and the way in.

use handraise_core::Moment;
use handraise_mcp::{
    Now,
    envelope::{Envelope, InboxAsk, Out, Spend, Withdrawal},
    frame::{ClientFrame, RequestId},
    record::Record,
};

use super::{
    Front,
    desk::{Desk, Unshown},
    pieces::Came,
    stdin::{Next, Stdin},
};
use crate::upstream::Beside;

/// What is left to do for what the envelope has said, by somebody else than the client and the server.
#[derive(Debug)]
pub(super) enum Errand {
    /// A nonce is looked for or spent, once the lock is gone.
    Spend(Spend),
    /// The inbox is asked.
    Ask(Box<InboxAsk>),
    /// And what it was asked is taken back.
    Withdraw(String, Withdrawal, Box<Record>),
}

/// All of it, in its order.
pub(super) type Errands = Vec<Errand>;

/// What is decided under one lock.
#[derive(Debug)]
pub(crate) struct State {
    pub(super) envelope: Envelope,
    pub(super) desk: Desk,
    pub(super) stdin: Stdin,
    /// The rest for stdin waits for room.
    pub(super) needs_server: bool,
    /// Frames were gathered for stdin.
    pub(super) needs_flush: bool,
    /// When the envelope wants to hear the time.
    pub(super) alarm: Option<Moment>,
}

impl State {
    pub(super) fn new(envelope: Envelope, desk: Desk, stdin: Stdin) -> Self {
        Self { envelope, desk, stdin, needs_server: false, needs_flush: false, alarm: None }
    }

    /// Carries out what the envelope has said. What becomes of a question is recorded before anybody hears of it; what others
    /// are asked for is left in `errands`.
    pub(super) fn carry_out(&mut self, out: &mut Vec<Out>, now: Now, front: &Front, errands: &mut Errands) {
        while !out.is_empty() {
            let mut unshown = Vec::new();
            front.record(out.iter().filter_map(|out| match out {
                Out::Record(record) => Some(record),
                Out::ToClient { .. }
                | Out::ToUpstream(_)
                | Out::Spend(_)
                | Out::Ask(_)
                | Out::Withdraw { .. } => None,
            }));
            for out in out.drain(..) {
                match out {
                    Out::ToClient { for_call, frame } => {
                        unshown.extend(self.desk.deliver(for_call.as_ref(), frame).err());
                    }
                    Out::ToUpstream(frame) => {
                        let beside = self.beside(&frame);
                        self.send(Came::lent(&frame), beside);
                    }
                    Out::Record(_) => {}
                    Out::Spend(spend) => errands.push(Errand::Spend(spend)),
                    Out::Ask(ask) => errands.push(Errand::Ask(ask)),
                    Out::Withdraw { key, why, record } => errands.push(Errand::Withdraw(key, why, record)),
                }
            }
            for unshown in &unshown {
                self.not_shown(unshown, now, out);
            }
        }
    }

    /// A question that no stream can carry has been answered by that.
    pub(super) fn not_shown(&mut self, Unshown(id): &Unshown, now: Now, out: &mut Vec<Out>) {
        let reply = super::reply::error(id.raw(), -32601, "the client has no stream for this call");
        if let (Desk::Session(desk), Ok(frame)) = (&self.desk, ClientFrame::read(&reply)) {
            let caller = desk.caller();
            let _ = self.envelope.client_frame(&frame, &caller, now, out);
        }
    }

    /// What goes along with a frame of the envelope's: what the call came with that it runs.
    fn beside(&self, frame: &[u8]) -> Beside {
        if !self.stdin.is_remote() {
            return Beside::default();
        }
        let frame = ClientFrame::read(frame).ok().filter(|frame| frame.method() == Some("tools/call"));
        let id = frame.as_ref().and_then(ClientFrame::id);
        let call = id.map(|id| self.envelope.runs_again(id).map_or(id, RequestId::borrow));
        Beside { charge: None, params: call.and_then(|call| self.desk.params(call)) }
    }

    pub(super) fn send(&mut self, frame: Came<'_>, beside: Beside) {
        // Who has others beside it lets them write first, and all goes out together.
        let others = self.envelope.open_requests() > 1;
        match self.stdin.send(frame, beside, others) {
            Next::Nothing => {}
            Next::Flush => self.needs_flush = true,
            Next::Serve => self.needs_server = true,
        }
    }
}
