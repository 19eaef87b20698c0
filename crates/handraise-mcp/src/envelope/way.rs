//! Which rail a refusal's question takes (mcp.md §7).

use handraise_core::Moment;
use handraise_core::words::{Era, Rail};

use super::Envelope;
use super::open::Call;
use super::refused::Bar;
use crate::Now;
use crate::declared::Party;

/// A rail that serves a question, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// The client's own form.
    Form,
    /// The inbox, until then.
    Inbox(Moment),
}

impl Envelope {
    /// The first rail after one that serves this call. `Err`: none does, and why.
    pub(super) fn way(
        &mut self,
        call: &Call,
        party: &Party,
        tried: Option<Rail>,
        now: Now,
    ) -> Result<Way, Bar> {
        let mut bar = Bar::not_offered(None);
        let process = std::sync::Arc::clone(&self.process);
        for rail in process.config.refusal_rails.after(tried) {
            let barred = match rail {
                Rail::Form if !party.declared.takes_forms() => continue,
                Rail::Form if self.is_too_late(call, party, now) => Bar::not_offered(Some("too-late")),
                Rail::Form => return Ok(Way::Form),
                Rail::Inbox if !self.process.inbox_is_usable() => continue,
                Rail::Inbox => match self.inbox_until(call, now) {
                    Ok(until) => return Ok(Way::Inbox(until)),
                    Err(reason) => Bar::of_inbox(reason),
                },
                Rail::Url | Rail::Token | Rail::Refuse => continue,
            };
            bar = barred;
        }
        Err(bar)
    }

    /// Whether some rail may serve a client, before anything else is known about its call.
    pub(super) fn has_way(&self, party: &Party) -> bool {
        let ladder = &self.process.config.refusal_rails;
        ladder.after(None).any(|rail| match rail {
            Rail::Form => party.declared.takes_forms(),
            Rail::Inbox => self.process.inbox_is_usable(),
            Rail::Url | Rail::Token | Rail::Refuse => false,
        })
    }

    /// Whether a pushed question would have no time left.
    fn is_too_late(&self, call: &Call, party: &Party, now: Now) -> bool {
        party.era == Era::Push && call.arrived + self.process.config.ask_timeout <= now.boot
    }
}
