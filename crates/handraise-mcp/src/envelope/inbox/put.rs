//! A refusal's question is put to the inbox, and its call waits.

use std::time::Duration;

use handraise_core::Moment;
use handraise_core::words::{Era, Rail, Source};

use super::{InboxAsk, ON_ITS_WAY, PROGRESS_EVERY};
use crate::Now;
use crate::envelope::open::{Asking, Call, Open, Surface};
use crate::envelope::progress::is_watched;
use crate::envelope::refused::Subject;
use crate::envelope::room::{Kept, Room, Turn};
use crate::envelope::way::Way;
use crate::envelope::{Envelope, Out, Route};
use crate::frame::Id;
use crate::question::requested_schema;
use crate::seal::RefusalState;

/// What is known of a question that waits in the inbox.
#[derive(Debug)]
pub(in crate::envelope) struct InInbox {
    pub(in crate::envelope) waiting: Waiting,
    /// When the client next hears that its call goes on.
    pub(in crate::envelope) beat: Option<Moment>,
    /// The state of a retry that goes on here: nothing is known of its question but this.
    pub(in crate::envelope) retry: Option<Box<RefusalState>>,
}

/// A question that waits in the inbox, of a refusal or of a guarded call.
#[derive(Debug)]
pub(in crate::envelope) struct Waiting {
    /// Its place among its caller's.
    _turn: Turn,
    /// It waits for less than a call may, because the session has waited so much: its end says nothing about operators.
    pub(in crate::envelope) is_cut: bool,
}

/// What a client answered that nobody was shown the question by.
#[derive(Debug, Clone, Copy)]
pub(in crate::envelope) struct Unshown {
    /// The answer's word.
    pub(in crate::envelope) word: &'static str,
    /// How fast it came.
    pub(in crate::envelope) after: Duration,
    /// It said that it cannot show the question.
    pub(in crate::envelope) says_so: bool,
}

impl Unshown {
    /// What an operator is told of it.
    pub(in crate::envelope) fn sentence(self) -> String {
        if self.says_so {
            return "The client cannot show the question itself.".to_owned();
        }
        let ms = self.after.as_millis();
        format!("The client answered {} after {ms} ms: nobody can have read the question there.", self.word)
    }
}

impl Envelope {
    /// Until when a call may wait for the inbox. `Err`: not at all, and why.
    pub(in crate::envelope) fn inbox_until(&mut self, call: &Call, now: Now) -> Result<Moment, &'static str> {
        let left = self.patience.left(self.process.config.waits)?;
        let until = self.wait_of(call).min(now.boot + left);
        if until <= now.boot {
            return Err("too-late");
        }
        let bar = self.patience.turn_bar().or_else(|| self.room.turn_bar(now.boot));
        bar.map_or(Ok(until), Err)
    }

    /// Until when a call may wait, whatever its session has waited.
    fn wait_of(&self, call: &Call) -> Moment {
        let waits = self.process.config.waits;
        call.arrived + if watched_token(call).is_some() { waits.with_progress } else { waits.plain }
    }

    /// A call begins to wait in the inbox.
    pub(in crate::envelope) fn begin_to_wait(&mut self, call: &Call, until: Moment, now: Now) -> Waiting {
        self.patience.begin();
        Waiting { _turn: Room::turn(&self.room, now.boot), is_cut: until < self.wait_of(call) }
    }

    /// Asks the inbox, and lets the call wait.
    pub(in crate::envelope) fn put(
        &mut self,
        asked: ToPut,
        until: Moment,
        unshown: Option<Unshown>,
        now: Now,
        out: &mut Vec<Out>,
    ) {
        let ToPut { call, subject, refusal, retry } = asked;
        let Some(id) = call.id().map(Id::to_owned) else { return };
        let key = self.ids.inbox();
        let mut message = subject.ambiguity.message(&subject.visible_tool());
        if let Some(unshown) = unshown {
            message.push_str("\n\n");
            message.push_str(&unshown.sentence());
        }
        out.push(Out::Ask(Box::new(InboxAsk {
            key: key.clone(),
            source: Source::Refusal,
            message,
            schema: requested_schema(&subject.ambiguity),
            tool: subject.tool.clone(),
            principal: call.caller.principal.clone(),
            client: subject.party.client.clone(),
            server: self.handshake.server().map(str::to_owned),
            timeout: now.boot.until(until),
            confirm: None,
        })));
        let waiting = self.begin_to_wait(&call, until, now);
        let deadline = until + ON_ITS_WAY;
        self.deadlines.insert((deadline, key.clone()));
        let beat = watched_token(&call).is_some().then(|| now.boot + PROGRESS_EVERY);
        if let Some(beat) = beat {
            self.progress.waits(call.progress_token());
            self.deadlines.insert((beat, key.clone()));
        }
        self.asks.insert(key.clone(), id.clone());
        let surface = Surface::Inbox(InInbox { waiting, beat, retry });
        let asking = Asking { call, ask: key, subject, refusal, asked: now.boot, deadline, surface };
        self.open.insert(id.borrow(), Open::Asking(Box::new(asking)));
    }

    /// A question that nobody was shown goes on to the next rail, or its call ends with the refusal.
    pub(in crate::envelope) fn go_down(
        &mut self,
        asked: ToPut,
        tried: Rail,
        unshown: Option<Unshown>,
        now: Now,
        out: &mut Vec<Out>,
    ) {
        let is_stuck = self.client_is_closed || !self.process.elicitation();
        let way = if is_stuck { None } else { self.way_down(&asked, tried, now, out) };
        match way {
            Some(Way::Inbox(until)) => self.put(asked, until, unshown, now, out),
            Some(Way::Form) if asked.subject.party.era == Era::Mrtr => {
                let ToPut { call, subject, refusal, .. } = asked;
                let process = std::sync::Arc::clone(&self.process);
                let route = process
                    .read_server_frame(refusal.bytes())
                    .ok()
                    .and_then(|frame| Some(self.hand_back(&call, &subject, frame.result()?, now, out)));
                if route != Some(Route::Consumed) {
                    self.end_with_refusal(&call, &refusal, out);
                }
            }
            Some(Way::Form) => {
                let ToPut { call, subject, refusal, .. } = asked;
                self.push(call, subject, refusal, now, out);
            }
            None => self.end_with_refusal(&asked.call, &asked.refusal, out),
        }
    }

    /// The next rail; why there is none is recorded where that is not known already.
    fn way_down(&mut self, asked: &ToPut, tried: Rail, now: Now, out: &mut Vec<Out>) -> Option<Way> {
        match self.way(&asked.call, &asked.subject.party, Some(tried), now) {
            // A retry's form has been there.
            Ok(Way::Form) if asked.retry.is_some() => None,
            Ok(way) => Some(way),
            Err(bar) => {
                if let Some(reason) = bar.reason {
                    out.push(asked.subject.not_offered(bar.rail, reason));
                }
                None
            }
        }
    }

    /// Tells the client of a call that waits for the inbox that it goes on, if that is due.
    pub(in crate::envelope) fn beat(&mut self, key: &str, due: Moment, out: &mut Vec<Out>) -> bool {
        let Some(id) = self.asks.get(key).or_else(|| self.guarded.awaited_by(key)) else { return false };
        let (beat, deadline, call) = match self.open.get_mut(id.borrow()) {
            Some(Open::Asking(asking)) => match &mut asking.surface {
                Surface::Inbox(in_inbox) => (&mut in_inbox.beat, asking.deadline, &asking.call),
                Surface::Form => return false,
            },
            Some(Open::Guarded(held)) => match held.in_inbox() {
                Some(in_inbox) => in_inbox,
                None => return false,
            },
            _ => return false,
        };
        if *beat != Some(due) || deadline == due {
            return false;
        }
        let next = due + PROGRESS_EVERY;
        *beat = (next < deadline).then_some(next);
        if let Some(next) = *beat {
            self.deadlines.insert((next, key.to_owned()));
        }
        if let Some(token) = call.progress_token()
            && let Some(frame) = self.progress.beat(token)
        {
            out.push(Out::ToClient { for_call: Some(id.clone()), frame });
        }
        true
    }
}

/// The token with which the client of a call can be told that it goes on.
pub(in crate::envelope) fn watched_token(call: &Call) -> Option<Id<'_>> {
    call.progress_token().filter(is_watched)
}

/// A question on its way from one rail to another.
#[derive(Debug)]
pub(in crate::envelope) struct ToPut {
    pub(in crate::envelope) call: Call,
    pub(in crate::envelope) subject: Subject,
    /// What the call ends with otherwise.
    pub(in crate::envelope) refusal: Kept,
    pub(in crate::envelope) retry: Option<Box<RefusalState>>,
}
