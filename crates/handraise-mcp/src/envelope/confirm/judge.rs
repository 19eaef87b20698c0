//! A call comes in: whether it is guarded, and what it brought.

use std::sync::Arc;

use handraise_core::words::{Outcome, Provenance, Rail};
use serde_json::value::RawValue;

use super::carry::Carries;
use super::{About, Accepted, Brought, Footing, Held, Stage, told};
use crate::Now;
use crate::canonical::{self, Dialect, canonical};
use crate::confirm::{self, ARGUMENT, ConfirmConfig, Guarding, MAX_TOKEN_PREVIEW_BYTES, Rejection, Told};
use crate::declared::Party;
use crate::envelope::from_client::ID_IN_USE;
use crate::envelope::mrtr::string;
use crate::envelope::open::{Call, tool};
use crate::envelope::{Caller, Envelope, Out, Route, failed};
use crate::frame::reply::{self, INVALID_PARAMS, INVALID_REQUEST};
use crate::frame::splice::Splice;
use crate::frame::{ClientFrame, Id};
use crate::pointer::{self, sole};
use crate::record::Record;

/// A call as it came, and what is known about it.
pub(super) struct Arrival<'a, 'b> {
    pub(super) frame: &'a ClientFrame<'b>,
    pub(super) id: Id<'a>,
    pub(super) caller: &'a Arc<Caller>,
    pub(super) tool: String,
    pub(super) party: Party,
    pub(super) guarding: Guarding,
    pub(super) action: String,
    pub(super) arguments: canonical::Canonical,
    /// The arguments as they stand in the frame.
    pub(super) raw: &'a RawValue,
    pub(super) strips_token: bool,
    pub(super) now: Now,
}

impl Arrival<'_, '_> {
    pub(super) fn record(
        &self,
        rail: Rail,
        outcome: Outcome,
        provenance: Provenance,
        reason: Option<&'static str>,
    ) -> Out {
        let record = Record::of(&self.party, self.tool.clone(), rail, outcome, provenance);
        Out::Record(Record { reason, ..record })
    }

    pub(super) fn told(&self, what: &Told) -> Out {
        told(self.id, self.party.era, what)
    }

    /// As the upstream gets it: without what is ours.
    fn stripped(&self) -> Vec<u8> {
        stripped(self.frame, self.strips_token)
    }

    fn account(&self) -> Option<String> {
        self.guarding.guard.account(self.raw)
    }

    fn target(&self) -> String {
        self.guarding.guard.target(self.raw)
    }
}

impl Envelope {
    /// Takes a tool call that has an id. `None`: it is not guarded, and goes the way of all others.
    pub(in crate::envelope) fn guard(
        &mut self,
        frame: &ClientFrame<'_>,
        id: Id<'_>,
        caller: &Arc<Caller>,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Option<Route> {
        // Where nothing is guarded, this is all that a call pays.
        self.process.config.confirm.as_ref()?;
        let process = Arc::clone(&self.process);
        let config = process.config.confirm.as_ref()?;
        let Some(name) = exact_name(frame) else {
            out.push(failed(id.to_owned(), INVALID_PARAMS, "a tool call names its tool in a string"));
            return Some(Route::Consumed);
        };
        if !config.guards.concern(&name) {
            return None;
        }
        if self.open.get(id).is_some() {
            out.push(failed(id.to_owned(), INVALID_REQUEST, ID_IN_USE));
            return Some(Route::Consumed);
        }
        if self.guarded.list_until.is_some_and(|until| until <= now.boot) {
            self.guarded.list = None;
        }
        if self.guarded.list.is_none() {
            let Some(call) = Call::keep(&self.room, frame, caller, now.boot, self.upstream_asks) else {
                out.push(Self::no_room(id));
                return Some(Route::Consumed);
            };
            let party = self.party(frame);
            let held = Held {
                id: id.to_owned(),
                call,
                party,
                about: None,
                again: None,
                stage: Stage::Listing,
                wait: None,
                waiting: None,
            };
            self.await_listing(Box::new(held), now, out);
            return Some(Route::Consumed);
        }
        self.judge(config, name, frame, id, caller, now, out)
    }

    /// Takes a tool call that nobody could answer: nothing runs of what may be guarded.
    pub(in crate::envelope) fn guard_unanswerable(
        &self,
        frame: &ClientFrame<'_>,
        out: &mut Vec<Out>,
    ) -> Route {
        let Some(config) = &self.process.config.confirm else { return Route::Forward };
        if exact_name(frame).is_some_and(|name| !config.guards.concern(&name)) {
            return Route::Forward;
        }
        let party = self.party(frame);
        out.push(not_offered(&party, tool(frame), "no-id"));
        if !frame.id_at.is_empty() {
            let message = "a tool call that needs a confirmation has an id that is a string or a number";
            let frame = reply::error("null", INVALID_REQUEST, message, None);
            out.push(Out::ToClient { for_call: None, frame });
        }
        Route::Consumed
    }

    /// Judges a call once the server's tools are known. `None`: it is not guarded.
    #[expect(clippy::too_many_arguments, reason = "a call, whose it is, when, and what follows")]
    pub(super) fn judge(
        &mut self,
        config: &ConfirmConfig,
        tool: String,
        frame: &ClientFrame<'_>,
        id: Id<'_>,
        caller: &Arc<Caller>,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Option<Route> {
        let listed = self.guarded.list.as_ref().and_then(|list| list.tool(&tool));
        let is_harmless = listed.is_some_and(|tool| tool.is_harmless) && !self.process.is_harmful(&tool);
        let guarding = config.guards.of(&tool, is_harmless)?;
        let strips_token = !listed.is_some_and(|tool| tool.has_own_token);
        let party = self.party(frame);
        let action = guarding.guard.action(&tool);
        let text = arguments(frame);
        let omitted = strips_token.then_some(ARGUMENT);
        let bindable = canonical(text.as_bytes(), omitted, Dialect::DoubledDollar)
            .and_then(|canonical| Ok((canonical, raw(text)?)));
        let (arguments, raw) = match bindable {
            Ok(bindable) => bindable,
            Err(why) => {
                out.push(not_offered(&party, tool, why.as_str()));
                out.push(told(id, party.era, &Told::unbindable(&action, why)));
                return Some(Route::Consumed);
            }
        };
        // No surface shows that much, and nothing of it is kept.
        if arguments.as_str().len() > MAX_TOKEN_PREVIEW_BYTES {
            let hidden = arguments.as_str().len() - MAX_TOKEN_PREVIEW_BYTES;
            out.push(not_offered(&party, tool, "too-long"));
            out.push(told(id, party.era, &Told::too_long(&action, hidden)));
            return Some(Route::Consumed);
        }
        let arrival =
            Arrival { frame, id, caller, tool, party, guarding, action, arguments, raw, strips_token, now };
        let carries = match self.carried(config, &arrival, out) {
            Ok(carries) => carries,
            Err(route) => return Some(route),
        };
        self.admit(config, arrival, carries, out);
        Some(Route::Consumed)
    }

    /// Lets a judged call go on to its rail, or ends it where it has none.
    fn admit(
        &mut self,
        config: &ConfirmConfig,
        arrival: Arrival<'_, '_>,
        carries: Carries,
        out: &mut Vec<Out>,
    ) {
        let refused =
            |reason| arrival.record(Rail::Refuse, Outcome::NotOffered, Provenance::System, Some(reason));
        if !config.is_open {
            let unavailable = Rejection::StoreUnavailable;
            out.push(refused(unavailable.as_str()));
            out.push(arrival.told(&Told::rejected(&arrival.action, unavailable, None)));
            return;
        }
        let demand = arrival.guarding.demand;
        let form_was_sent = !matches!(carries, Carries::Nothing);
        let footing = Footing {
            declared: arrival.party.declared,
            demand,
            form_was_sent,
            takes_token: arrival.strips_token,
        };
        let unshown = if let Carries::Unshown(unshown) = &carries { Some(*unshown) } else { None };
        let rail = match carries {
            // Its form has been there, or is there again.
            Carries::Anew | Carries::Accepted(..) if !demand.needs_inbox() => Ok(Rail::Form),
            Carries::Unshown(_) => self.rail(config, footing, Some(Rail::Form)),
            _ => self.rail(config, footing, None),
        };
        let rail = match rail {
            Ok(rail) => rail,
            Err(_) if demand.needs_inbox() => {
                out.push(refused("needs-inbox"));
                out.push(arrival.told(&Told::needs_inbox(&arrival.action)));
                return;
            }
            Err(_) if unshown.is_some() => {
                out.push(arrival.told(&Told::not_shown(&arrival.action)));
                return;
            }
            Err(remedy) => {
                out.push(refused("no-rail"));
                out.push(arrival.told(&Told::unsupported(&arrival.action, remedy, config.forms)));
                return;
            }
        };
        let (account, target) = (arrival.account(), arrival.target());
        let mut was_asked_again = false;
        let brought = match carries {
            Carries::Accepted(state, latency_ms) if rail == Rail::Form => {
                was_asked_again = state.was_asked_again;
                Brought::Accepted(Accepted {
                    hash: state.hash,
                    revision: state.revision,
                    nonce: state.nonce,
                    expires_ms: state.expiry.wall_ms,
                    latency_ms,
                    provenance: Provenance::Client,
                    ask: None,
                })
            }
            _ if rail == Rail::Token => {
                let of = confirm::Call { tool: &arrival.tool, account: account.as_deref(), target: &target };
                match brought_token(config, arrival.raw, of) {
                    Ok(brought) => brought,
                    Err(rejection) => {
                        let reason = Some(rejection.as_str());
                        out.push(arrival.record(Rail::Token, Outcome::Invalid, Provenance::Client, reason));
                        out.push(arrival.told(&Told::rejected(&arrival.action, rejection, None)));
                        return;
                    }
                }
            }
            _ => Brought::Nothing,
        };
        let bytes = arrival.stripped();
        let kept = ClientFrame::read(&bytes).ok().and_then(|frame| {
            Call::keep(&self.room, &frame, arrival.caller, arrival.now.boot, self.upstream_asks)
        });
        let Some(call) = kept else {
            out.push(Self::no_room(arrival.id));
            return;
        };
        let about = About {
            tool: arrival.tool,
            guard: arrival.guarding.guard,
            action: arrival.action,
            account,
            target,
            arguments: arrival.arguments,
            strips_token: arrival.strips_token,
            brought,
            form_was_sent,
            was_asked_again,
            rail,
            demand,
            unshown,
            told_progress: None,
            tool_digest: String::new(),
            fresh: None,
        };
        let (id, now) = (arrival.id.to_owned(), arrival.now);
        let held = Held {
            id,
            call,
            party: arrival.party,
            about: Some(about),
            again: None,
            stage: Stage::Listing,
            wait: None,
            waiting: None,
        };
        self.read_fresh(Box::new(held), now, out);
    }
}

/// A record of a call that is not asked about, and does not run.
fn not_offered(party: &Party, tool: String, reason: &'static str) -> Out {
    let record = Record::of(party, tool, Rail::Refuse, Outcome::NotOffered, Provenance::System);
    Out::Record(Record { reason: Some(reason), ..record })
}

/// The tool's name, where every reader reads the same.
fn exact_name(frame: &ClientFrame<'_>) -> Option<String> {
    let name = frame.param(|params| params.name.as_ref())?;
    canonical(name.as_bytes(), None, Dialect::Plain).ok()?;
    string(name)
}

/// The arguments of a call; none is as good as an empty object.
pub(super) fn arguments<'a>(frame: &ClientFrame<'a>) -> &'a str {
    let arguments = frame.param(|params| params.arguments.as_ref());
    arguments.filter(|arguments| *arguments != "null").unwrap_or("{}")
}

fn raw(json: &str) -> Result<&RawValue, canonical::Unbindable> {
    serde_json::from_str(json).map_err(|_| canonical::Unbindable::Malformed)
}

/// The token that a call brings, after the checks 1 to 4. Models fill in what is optional: nothing and no text are none.
fn brought_token(
    config: &ConfirmConfig,
    arguments: &RawValue,
    call: confirm::Call<'_>,
) -> Result<Brought, Rejection> {
    let Ok(Some(token)) = sole(arguments, ARGUMENT) else { return Ok(Brought::Nothing) };
    if matches!(token.get(), "null" | "\"\"") {
        return Ok(Brought::Nothing);
    }
    let (Some(token), Ok(tokens)) = (pointer::string(token), &config.tokens) else {
        return Err(Rejection::Malformed);
    };
    confirm::verify(&token, &tokens.key, call).map(Brought::Token)
}

/// A call without what belongs to us: our state, the answers to our question, and the token.
fn stripped(frame: &ClientFrame<'_>, strips_token: bool) -> Vec<u8> {
    let mut splice = Splice::default();
    strip_token(&mut splice, frame, strips_token);
    if let Some(params) = &frame.params {
        splice.remove_members(frame.bytes(), params.at.clone(), |key| {
            matches!(key, "requestState" | "inputResponses")
        });
    }
    splice.apply(frame.bytes())
}

/// A call without our token, and with all else that it has.
pub(super) fn without_token(frame: &ClientFrame<'_>, strips_token: bool) -> Vec<u8> {
    let mut splice = Splice::default();
    strip_token(&mut splice, frame, strips_token);
    splice.apply(frame.bytes())
}

fn strip_token(splice: &mut Splice, frame: &ClientFrame<'_>, strips_token: bool) {
    let arguments = frame.params.as_ref().and_then(|params| params.arguments.clone());
    if let Some(arguments) = arguments.filter(|_| strips_token) {
        splice.remove_members(frame.bytes(), arguments, |key| key == ARGUMENT);
    }
}
