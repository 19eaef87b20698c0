//! What becomes of what is open when a side ends.

use handraise_core::words::{Outcome, Provenance};

use super::open::Open;
use super::{Envelope, Out, failed};
use crate::Now;
use crate::frame::RequestId;
use crate::frame::reply::INTERNAL;

impl Envelope {
    /// The client sends nothing more, and the upstream may get nothing more. Nobody can answer our questions, and what was
    /// accepted and waits for the candidates of now can no longer run: such calls end with the refusal. Other open
    /// requests stay open, because their answers may still be delivered.
    pub fn client_closed(&mut self, now: Now, out: &mut Vec<Out>) {
        self.client_is_closed = true;
        self.patience.at(now.boot);
        self.guarded_client_closed(now, out);
        let asks: Vec<RequestId> = self.asks.values().cloned().collect();
        for call in asks {
            if let Some(Open::Asking(asking)) = self.open.remove(call.borrow()) {
                self.withdraw(&asking, "the client is gone", "client-closed", Provenance::System, now, out);
                let frame = asking.refusal.bytes().to_vec();
                out.push(Out::ToClient { for_call: Some(call), frame });
            }
        }
        let checks: Vec<String> = self.ours.keys().cloned().collect();
        for ours in checks {
            self.end_check(&ours, "the client is gone", Outcome::Withdrawn, "client-closed", out);
        }
    }

    /// The upstream is gone: every open request is answered with an error that names `status`, and so is every later
    /// one. `status` is shown to the client: it says how the process ended, and nothing that the process wrote (S33).
    pub fn upstream_ended(&mut self, status: &str, now: Now, out: &mut Vec<Out>) {
        let message = ended_message(status);
        self.patience.at(now.boot);
        let open: Vec<Open> = self.open.take().collect();
        for open in open {
            match &open {
                Open::Asking(asking) => {
                    self.withdraw(asking, "the server ended", "server-ended", Provenance::System, now, out);
                }
                Open::Checking(checking) => {
                    out.push(checking.retry.given_up(Outcome::Withdrawn, "server-ended"));
                }
                Open::Guarded(held) => {
                    held.withdraw("the server ended", "server-ended", Provenance::System, now, out);
                }
                Open::Plain(_) | Open::Called(_) | Open::Rerun(_) => {}
            }
            out.extend(open.id().map(|id| failed(id.to_owned(), INTERNAL, &message)));
        }
        self.ours.clear();
        self.guarded_upstream_ended();
        self.deadlines.clear();
        self.progress.clear();
        self.ended = Some(status.to_owned());
    }
}

pub(super) fn ended_message(status: &str) -> String {
    format!("the MCP server ended: {status}")
}
