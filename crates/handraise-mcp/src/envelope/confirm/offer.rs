//! What would happen is shown: with a form, or with a preview and a token.

use handraise_core::Moment;
use handraise_core::words::{Era, Outcome, Provenance, Rail};

use super::{Held, Stage, takes_form};
use crate::Now;
use crate::confirm::{Claims, Phase1, Shown, Told, TooLong, confirm_params, confirm_requests, sign};
use crate::envelope::mrtr::bound;
use crate::envelope::{Envelope, Out};
use crate::frame::reply;
use crate::frame::splice::quoted;
use crate::question::FormDialect;
use crate::seal::{ConfirmState, Expiry};

impl Envelope {
    /// Shows a call on its rail.
    pub(super) fn offer(&mut self, held: Box<Held>, now: Now, out: &mut Vec<Out>) {
        match held.about.as_ref().map(|about| about.rail) {
            Some(Rail::Token) => self.give_token(&held, now, out),
            Some(Rail::Inbox) => self.put_guarded(held, now, out),
            Some(_) => self.ask(held, now, out),
            None => {}
        }
    }

    /// The first of the two calls of the token rail.
    fn give_token(&mut self, held: &Held, now: Now, out: &mut Vec<Out>) {
        let told = self.phase1(held, now, Told::confirmation_required);
        match told {
            Ok(told) => {
                out.push(held.record(Rail::Token, Outcome::Asked, Provenance::System, None, None));
                held.tell(&told, out);
            }
            Err(too_long) => Self::too_long(held, Rail::Token, too_long, out),
        }
    }

    /// What a caller is told with a fresh preview and a token for it.
    pub(super) fn phase1(
        &mut self,
        held: &Held,
        now: Now,
        told: impl FnOnce(&str, &Phase1<'_>) -> Told,
    ) -> Result<Told, TooLong> {
        let nonce = self.ids.nonce();
        let config = self.process.config.confirm.as_ref();
        let tokens = config.and_then(|config| config.tokens.as_ref().ok());
        let (Some(about), Some(tokens)) = (&held.about, tokens) else { return Err(TooLong { hidden: 0 }) };
        let Some(fresh) = &about.fresh else { return Err(TooLong { hidden: 0 }) };
        let shown = shown(held).map_or(Err(TooLong { hidden: 0 }), |shown| shown.json())?;
        let ttl_ms = u64::try_from(tokens.ttl.as_millis()).unwrap_or(u64::MAX);
        let expires_ms = now.wall_ms.saturating_add(ttl_ms);
        let claims = Claims {
            tool: about.tool.clone(),
            account: about.account.clone(),
            target: about.target.clone(),
            revision: fresh.revision.clone(),
            hash: fresh.hash.clone(),
            expires_ms,
            nonce,
        };
        let phase1 = Phase1 {
            preview: Some(&shown),
            token: &sign(&claims, &tokens.key),
            expires_ms,
            ttl_seconds: tokens.ttl.as_secs(),
            mode: tokens.mode,
        };
        Ok(told(&about.action, &phase1))
    }

    /// Asks with a form.
    fn ask(&mut self, mut held: Box<Held>, now: Now, out: &mut Vec<Out>) {
        // Whoever was asked before may declare nothing any more: then there is nobody to ask, and no token either (S8).
        let config = self.process.config.confirm.as_ref();
        if !config.is_some_and(|config| takes_form(config, held.party.declared)) {
            out.push(held.record(
                Rail::Form,
                Outcome::NotOffered,
                Provenance::System,
                None,
                Some("form-not-declared"),
            ));
            held.tell(&Told::not_shown(held.action()), out);
            return;
        }
        let message = shown(&held).map_or(Err(TooLong { hidden: 0 }), |shown| shown.message());
        let message = match message {
            Ok(message) => message,
            Err(too_long) => return Self::too_long(&held, Rail::Form, too_long, out),
        };
        if held.party.era == Era::Mrtr {
            return self.hand_form_back(&held, &message, now, out);
        }
        if self.client_is_closed {
            out.push(held.record(
                Rail::Form,
                Outcome::NotOffered,
                Provenance::System,
                None,
                Some("client-closed"),
            ));
            held.tell(&Told::not_shown(held.action()), out);
            return;
        }
        let timeout = self.process.config.ask_timeout;
        let was_asked_again = held.about.as_ref().is_some_and(|about| about.was_asked_again);
        let deadline = if was_asked_again { now.boot + timeout } else { held.call.arrived + timeout };
        if deadline <= now.boot {
            out.push(held.record(
                Rail::Form,
                Outcome::NotOffered,
                Provenance::System,
                None,
                Some("too-late"),
            ));
            held.tell(&Told::timed_out(held.action()), out);
            return;
        }
        let dialect = FormDialect::of_version(held.party.version.as_deref().unwrap_or_default());
        let ask = self.ids.ask();
        let params = confirm_params(&message, held.action(), dialect);
        let frame = reply::request(&quoted(&ask), "elicitation/create", &params);
        out.push(Out::ToClient { for_call: Some(held.id.clone()), frame });
        if let Some(about) = &mut held.about {
            about.form_was_sent = true;
        }
        self.hold(held, Stage::Asking(now.boot), Some((deadline, ask)));
    }

    /// Hands the form back. What was shown travels in the state, and nothing is kept here.
    fn hand_form_back(&mut self, held: &Held, message: &str, now: Now, out: &mut Vec<Out>) {
        let nonce = self.ids.nonce();
        let config = &self.process.config;
        let (Some(confirm), Some(about)) = (&config.confirm, &held.about) else { return };
        let Some(fresh) = &about.fresh else { return };
        let state = ConfirmState {
            upstream: config.upstream.as_str().to_owned(),
            tool: about.tool.clone(),
            arguments_sha256: about.arguments.sha256(),
            revision: fresh.revision.clone(),
            hash: fresh.hash.clone(),
            was_asked_again: about.was_asked_again,
            expiry: Expiry::from_now(now, config.clock),
            nonce,
        };
        let state = state.seal(&confirm.keyring, bound(&held.call.caller));
        let requests = confirm_requests(message, &about.action);
        let result = format!(
            "{{\"resultType\":\"input_required\",\"inputRequests\":{requests},\"requestState\":{}}}",
            quoted(&state)
        );
        out.push(held.record(Rail::Form, Outcome::Asked, Provenance::System, None, None));
        let frame = reply::result(held.id.raw(), &result);
        out.push(Out::ToClient { for_call: Some(held.id.clone()), frame });
    }

    /// A surface would not show all of it, and so nobody can confirm it there.
    pub(super) fn too_long(held: &Held, rail: Rail, too_long: TooLong, out: &mut Vec<Out>) {
        out.push(held.record(rail, Outcome::NotOffered, Provenance::System, None, Some("too-long")));
        held.tell(&Told::too_long(held.action(), too_long.hidden), out);
    }
}

/// What every surface shows of a call that has been read.
pub(super) fn shown(held: &Held) -> Option<Shown<'_>> {
    let about = held.about.as_ref()?;
    let fresh = about.fresh.as_ref()?;
    Some(Shown {
        principal: &held.call.caller.principal,
        client: held.party.client.as_deref(),
        action: &about.action,
        tool: &about.tool,
        account: about.account.as_deref(),
        target: &about.target,
        arguments: &about.arguments,
        preview: fresh.preview.as_deref(),
    })
}

/// How long ago that was, in milliseconds.
pub(super) fn millis(since: Moment, now: Now) -> u64 {
    u64::try_from(since.until(now.boot).as_millis()).unwrap_or(u64::MAX)
}
