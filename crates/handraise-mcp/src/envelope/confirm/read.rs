//! What would happen, as the server tells it now: the tool's definition, and a preview where the policy names one.

use handraise_core::words::{Outcome, Provenance, Rail};

use super::{Brought, Fresh, Held, PATIENCE, Stage};
use crate::Now;
use crate::canonical::Unbindable;
use crate::confirm::{Preview, PreviewFault, Told, gateway_payload, hash_of};
use crate::envelope::check::meta_without_progress;
use crate::envelope::room::Room;
use crate::envelope::{Envelope, Out, Route};
use crate::frame::reply::{self, INTERNAL};
use crate::frame::splice::quoted;
use crate::frame::{ClientFrame, Id, ServerFrame};

impl Envelope {
    /// Reads what would happen, and goes on with it.
    pub(super) fn read_fresh(&mut self, mut held: Box<Held>, now: Now, out: &mut Vec<Out>) {
        let Some(list) = &self.guarded.list else { return self.await_listing(held, now, out) };
        let Some(about) = &mut held.about else { return };
        about.tool_digest = list.digest(&about.tool);
        about.fresh = None;
        let guard = std::sync::Arc::clone(&about.guard);
        let Some(rule) = guard.preview() else { return self.was_read(held, None, now, out) };
        let listed = list.tool(rule.tool());
        let is_read_only =
            listed.is_some_and(|tool| tool.is_read_only) && !self.process.is_harmful(rule.tool());
        if !is_read_only && !rule.is_trusted() {
            return Self::no_preview(&held, PreviewFault::NotReadOnly, out);
        }
        // Who trusts a preview says that it does no harm, whatever its annotations are.
        let is_harmless = rule.is_trusted() || is_read_only;
        let config = self.process.config.confirm.as_ref();
        if config.is_none_or(|config| config.guards.of(rule.tool(), is_harmless).is_some()) {
            return Self::no_preview(&held, PreviewFault::Guarded, out);
        }
        let ours = self.ids.request();
        let Some(request) = preview_request(&held, rule, &ours) else {
            return Self::no_preview(&held, PreviewFault::Error, out);
        };
        out.push(Out::ToUpstream(request));
        self.hold(held, Stage::Preview, Some((now.boot + PATIENCE, ours)));
    }

    /// Takes the answer of a preview.
    pub(super) fn preview_came(
        &mut self,
        ours: &str,
        frame: &ServerFrame<'_>,
        now: Now,
        out: &mut Vec<Out>,
    ) -> bool {
        let Some(held) = self.take_held(ours) else { return false };
        let rule = held.about.as_ref().and_then(|about| about.guard.preview());
        let read = match rule {
            // A question says so also in a result that is too large to be read.
            Some(_) if self.is_question(frame) => Err(PreviewFault::Asked),
            // A refusal need not call itself an error.
            Some(_) if self.is_refusal(frame) => Err(PreviewFault::Refused),
            Some(rule) => Preview::read(rule, frame.result()),
            None => Err(PreviewFault::Error),
        };
        match read {
            Ok(preview) => self.was_read(held, Some(preview), now, out),
            Err(fault) => Self::no_preview(&held, fault, out),
        }
        true
    }

    fn is_refusal(&self, frame: &ServerFrame<'_>) -> bool {
        let result = frame.result().filter(|_| frame.looks.refusal);
        result.is_some_and(|result| self.process.config.rules.read(result, |_| false).is_some())
    }

    /// There is no preview, and so no confirmation.
    pub(super) fn no_preview(held: &Held, fault: PreviewFault, out: &mut Vec<Out>) {
        out.push(held.record(Rail::Refuse, Outcome::Error, Provenance::System, None, Some(fault.as_str())));
        let note =
            "What would happen could not be read from the server, so that there is nothing to confirm.";
        held.tell(&Told::unreadable(held.action(), fault.as_str(), note), out);
    }

    /// The upstream asks something by itself while a preview of ours is under way: a preview never asks. The question is
    /// answered with an error, unless it may belong to something else.
    pub(in crate::envelope) fn asked_by_preview(&mut self, id: Id<'_>, out: &mut Vec<Out>) -> Option<Route> {
        self.process.config.confirm.as_ref()?;
        let is_alone = self.open.len() == self.guarded.held;
        let mut has_asked = false;
        let keys: Vec<String> = self.guarded.waits.keys().cloned().collect();
        for key in keys {
            let Some(held) = self.take_held(&key) else { continue };
            if held.stage != Stage::Preview {
                let (stage, wait) = (held.stage, held.wait.clone());
                self.hold(held, stage, wait);
                continue;
            }
            has_asked = true;
            out.push(Out::ToUpstream(reply::cancelled(&quoted(&key), "a preview does not ask")));
            Self::no_preview(&held, PreviewFault::Asked, out);
        }
        (has_asked && is_alone).then(|| {
            let message = "a preview does not ask";
            out.push(Out::ToUpstream(reply::error(id.raw(), INTERNAL, message, None)));
            Route::Consumed
        })
    }

    /// What would happen has been read.
    fn was_read(&mut self, mut held: Box<Held>, preview: Option<Preview>, now: Now, out: &mut Vec<Out>) {
        let Some(about) = &mut held.about else { return };
        let (words, revision) =
            preview.map_or((None, None), |preview| (Some(preview.words), preview.revision));
        let upstream = self.process.config.upstream.as_str();
        let payload = gateway_payload(upstream, &about.tool_digest, words.as_deref());
        let hash = hash_of(&payload, &about.arguments);
        let room = words.as_ref().map(|words| Room::reserve(&self.room, words.get().len()));
        let (hash, room) = match (hash, room) {
            (Ok(hash), Some(Some(room))) => (hash, Some(room)),
            (Ok(hash), None) => (hash, None),
            (Ok(_), Some(None)) => {
                out.push(Self::no_room(held.id.borrow()));
                return;
            }
            (Err(Unbindable::Malformed | _), _) => return Self::no_preview(&held, PreviewFault::Error, out),
        };
        about.fresh = Some(Fresh { hash, revision, preview: words, _room: room });
        match &about.brought {
            Brought::Nothing => self.offer(held, now, out),
            Brought::Token(_) => self.look(held, now, out),
            Brought::Accepted(_) => self.compare(held, now, out),
        }
    }
}

/// The call of a preview, as the same client in the same era.
fn preview_request(held: &Held, rule: &crate::confirm::PreviewRule, ours: &str) -> Option<Vec<u8>> {
    let frame = ClientFrame::read(held.call.bytes()).ok()?;
    let arguments = frame.param(|params| params.arguments.as_ref());
    let arguments =
        serde_json::from_str(arguments.filter(|arguments| *arguments != "null").unwrap_or("{}")).ok()?;
    let mut params =
        format!("{{\"name\":{},\"arguments\":{}", quoted(rule.tool()), rule.arguments(arguments));
    if let Some(meta) = meta_without_progress(&frame) {
        params.push(',');
        params.push_str(&meta);
    }
    params.push('}');
    Some(reply::request(&quoted(ours), "tools/call", &params))
}
