//! A retry that waits for the candidates of now, where a rule names the tool that lists them.

use handraise_core::words::Outcome;

use crate::envelope::open::{Checking, Open};
use crate::envelope::retry::original;
use crate::envelope::{Envelope, Out};
use crate::frame::ClientFrame;
use crate::frame::reply;
use crate::frame::splice::{Splice, quoted};

impl Envelope {
    /// Takes the candidates of now: the chosen one must be among them, as it was offered.
    pub(super) fn checked(&mut self, checking: &mut Checking, result: Option<&str>, out: &mut Vec<Out>) {
        self.deadlines.remove(&(checking.deadline, checking.ours.clone()));
        let now = result.and_then(|result| checking.rule.candidates_now(result));
        let told = checking.retry.told.take();
        let retry = &checking.retry;
        let record = match now {
            Some(candidates) if checking.offered.is_still_in(&candidates) => {
                out.push(retry.record(Outcome::Accept, None));
                self.forward_again(&checking.id, checking.again.bytes().to_vec(), told, out);
                return;
            }
            Some(_) => retry.record(Outcome::Invalid, Some("candidate-changed")),
            None => retry.given_up(Outcome::Error, "candidates-unreadable"),
        };
        self.forget_told(told.as_deref());
        out.push(record);
        out.push(original(checking.id.borrow(), &retry.state.result));
    }

    /// The candidates of now did not come in time.
    pub(super) fn check_timed_out(&mut self, ours: &str, out: &mut Vec<Out>) {
        self.end_check(ours, "no answer in time", Outcome::Error, "candidates-late", out);
    }

    /// Ends a retry that waits for the candidates of now with the refusal. Under another request of ours nothing waits.
    pub(super) fn end_check(
        &mut self,
        ours: &str,
        why: &str,
        outcome: Outcome,
        reason: &'static str,
        out: &mut Vec<Out>,
    ) {
        let call = self.ours.get(ours);
        let is_checked =
            call.is_some_and(|call| matches!(self.open.get(call.borrow()), Some(Open::Checking(_))));
        if !is_checked {
            return;
        }
        let Some(call) = self.ours.remove(ours) else { return };
        let Some(Open::Checking(checking)) = self.open.remove(call.borrow()) else { return };
        self.deadlines.remove(&(checking.deadline, checking.ours.clone()));
        self.forget_told(checking.retry.told.as_deref());
        out.push(Out::ToUpstream(reply::cancelled(&quoted(ours), why)));
        out.push(checking.retry.given_up(outcome, reason));
        out.push(original(checking.id.borrow(), &checking.retry.state.result));
    }
}

/// A call of the read-only tool that lists candidates, as the same client in the same era.
pub(super) fn list_candidates(frame: &ClientFrame<'_>, id: &str, tool: &str) -> Vec<u8> {
    let meta = meta_without_progress(frame).map(|meta| format!(",{meta}"));
    let params = format!("{{\"name\":{},\"arguments\":{{}}{}}}", quoted(tool), meta.unwrap_or_default());
    reply::request(id, "tools/call", &params)
}

/// The member `_meta` of a request's params: who asks, and in which era; its progress is not ours.
pub(super) fn meta_without_progress(frame: &ClientFrame<'_>) -> Option<String> {
    let meta = frame.params.as_ref().and_then(|params| params.meta.as_ref())?;
    let mut splice = Splice::default();
    splice.remove_members(frame.bytes(), meta.clone(), |key| key == "progressToken");
    let bytes = splice.apply(&frame.bytes()[..meta.end]);
    Some(format!("\"_meta\":{}", String::from_utf8_lossy(bytes.get(meta.start..).unwrap_or_default())))
}
