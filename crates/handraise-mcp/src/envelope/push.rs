//! The push era: the question goes to the client as a request of ours (mcp.md §4).

use handraise_core::Moment;
use handraise_core::words::{Era, Outcome, Provenance, Rail};

use crate::Now;
use crate::envelope::inbox::{GIVEN_UP, ToPut, Unshown, Withdrawal};
use crate::envelope::open::{Asking, Call, Open, Rerun, Surface};
use crate::envelope::refused::Subject;
use crate::envelope::room::Kept;
use crate::envelope::{Envelope, Out, Route};
use crate::frame::reply;
use crate::frame::splice::{Splice, quoted};
use crate::frame::{Answered, ClientFrame, Id, Malformed, Scanner, member_named};
use crate::question::{Answer, FormDialect, elicitation_params};
use crate::record::Record;

/// JSON-RPC: the method does not exist.
const METHOD_NOT_FOUND: &str = "-32601";

/// What some clients say when they cannot show a form.
const NO_FIELDS: &str = "no supported fields";

impl Envelope {
    /// Asks the client, and holds the refusal back.
    pub(super) fn push(&mut self, call: Call, subject: Subject, refusal: Kept, now: Now, out: &mut Vec<Out>) {
        let Some(id) = call.id().map(Id::to_owned) else { return };
        let dialect = FormDialect::of_version(subject.party.version.as_deref().unwrap_or_default());
        let params = elicitation_params(&subject.ambiguity, &subject.visible_tool(), dialect);
        let ask = self.ids.ask();
        let request = reply::request(&quoted(&ask), "elicitation/create", &params);
        out.push(Out::ToClient { for_call: Some(id.clone()), frame: request });
        let deadline = call.arrived + self.process.config.ask_timeout;
        self.deadlines.insert((deadline, ask.clone()));
        self.asks.insert(ask.clone(), id.clone());
        let (asked, surface) = (now.boot, Surface::Form);
        let asking = Asking { call, ask, subject, refusal, asked, deadline, surface };
        self.open.insert(id.borrow(), Open::Asking(Box::new(asking)));
    }

    /// Takes a response of the client: to a question of ours, or to a request of the upstream.
    pub(super) fn client_response(
        &mut self,
        frame: &ClientFrame<'_>,
        id: Id<'_>,
        now: Now,
        out: &mut Vec<Out>,
    ) -> Route {
        let Some(ask) = id.text().filter(|id| self.ids.is_ask(id)) else { return Route::Forward };
        // What is no open question has been settled: the response is late, and means nothing.
        match self.take_asking(&ask) {
            Some(asking) => self.answered(*asking, Some(frame), now, out),
            None => self.guarded_answer(&ask, Some(frame), now, out),
        }
        Route::Consumed
    }

    /// Takes a frame of the client that is refused (S3), or that is too long to be read. It reaches nobody and is answered
    /// with [`Malformed::reply`], unless its id, or one of several, is that of a question of ours: that was an answer, which
    /// settles the question as invalid at once, and to which there is none.
    pub fn client_malformed(&mut self, malformed: &Malformed, now: Now, out: &mut Vec<Out>) {
        self.tick(now, out);
        let mut is_answer = false;
        for id in malformed.id.iter().chain(&malformed.ids) {
            let Some(ask) = Id::parse(id).and_then(Id::text).filter(|id| self.ids.is_ask(id)) else {
                continue;
            };
            is_answer = true;
            match self.take_asking(&ask) {
                Some(asking) => self.answered(*asking, None, now, out),
                None => self.guarded_answer(&ask, None, now, out),
            }
        }
        if !is_answer {
            out.push(Out::ToClient { for_call: None, frame: malformed.reply() });
        }
    }

    /// Whether an id is of the name space of our questions.
    pub(super) fn names_ask(&self, id: Id<'_>) -> bool {
        id.text().is_some_and(|id| self.ids.is_ask(&id))
    }

    /// Takes the call that an open question is about, if that key or id is one of a question's.
    pub(super) fn take_asking(&mut self, ask: &str) -> Option<Box<Asking>> {
        let call = self.asks.get(ask)?.clone();
        match self.open.remove(call.borrow()) {
            Some(Open::Asking(asking)) => {
                self.forget_ask(&asking);
                Some(asking)
            }
            _ => None,
        }
    }

    fn forget_ask(&mut self, asking: &Asking) {
        self.asks.remove(&asking.ask);
        self.deadlines.remove(&(asking.deadline, asking.ask.clone()));
        if let Surface::Inbox(in_inbox) = &asking.surface {
            self.patience.end();
            if let Some(beat) = in_inbox.beat {
                self.deadlines.remove(&(beat, asking.ask.clone()));
            }
        }
    }

    /// Settles a question by the client's answer; `None` when that cannot be read.
    fn answered(&mut self, asking: Asking, frame: Option<&ClientFrame<'_>>, now: Now, out: &mut Vec<Out>) {
        let latency = asking.asked.until(now.boot);
        let argument = asking.subject.ambiguity.rule.argument();
        let offered = asking.subject.ambiguity.candidates.iter().map(|candidate| candidate.value.as_str());
        let mut is_shown = latency >= self.process.config.min_human;
        let mut says_so = false;
        let mut chosen = None;
        let answer = frame.and_then(|frame| frame.answer.as_ref().map(|answer| (frame, answer)));
        let (outcome, reason) = match answer {
            // Whoever sends a method as well has not answered.
            Some((frame, _)) if frame.method().is_some() => (Outcome::Invalid, Some("answer-malformed")),
            Some((frame, Answered::Result(result))) => {
                match Answer::read(frame.text(result.clone()), argument, offered) {
                    Answer::Accept(value) => {
                        chosen = Some(value);
                        (Outcome::Accept, None)
                    }
                    Answer::Decline => (Outcome::Decline, None),
                    Answer::Cancel => (Outcome::Cancel, None),
                    Answer::Invalid(reason) => (Outcome::Invalid, Some(reason.as_str())),
                }
            }
            Some((frame, Answered::Error(error))) => {
                says_so = says_not_shown(frame.text(error.clone()));
                is_shown &= !says_so;
                (Outcome::Error, Some("client-error"))
            }
            Some((_, Answered::Both)) | None => (Outcome::Invalid, Some("answer-malformed")),
        };
        let provenance = if is_shown { Provenance::Client } else { Provenance::NotShown };
        self.note_decline(&asking.subject, outcome, provenance);
        out.push(asking.subject.record(Rail::Form, outcome, provenance, Some(millis(latency)), reason));
        let Asking { call, subject, refusal, .. } = asking;
        match chosen {
            Some(value) => self.run_again(call, &subject, &refusal, value.as_str(), out),
            None if !is_shown && falls_on(outcome) => {
                let unshown = Unshown { word: outcome.as_str(), after: latency, says_so };
                let asked = ToPut { call, subject, refusal, retry: None };
                self.go_down(asked, Rail::Form, Some(unshown), now, out);
            }
            None => self.end_with_refusal(&call, &refusal, out),
        }
    }

    /// Remembers a decline on the connection on which it was given.
    pub(super) fn note_decline(&mut self, subject: &Subject, outcome: Outcome, provenance: Provenance) {
        if subject.party.era == Era::Push {
            self.declined.note(&subject.ambiguity, outcome, provenance);
        }
    }

    /// Runs the call again, with the argument that was chosen: once, because what comes back is the call's answer.
    pub(super) fn run_again(
        &mut self,
        call: Call,
        subject: &Subject,
        refusal: &Kept,
        value: &str,
        out: &mut Vec<Out>,
    ) {
        let id = self.ids.request();
        let mut splice = Splice::default();
        let is_set = ClientFrame::read(call.bytes()).is_ok_and(|request| {
            splice.replace(request.id_at.clone(), quoted(&id));
            splice.set_argument(&request, subject.ambiguity.rule.argument(), value)
        });
        let Some(client_id) = call.id().map(Id::to_owned).filter(|_| is_set) else {
            self.end_with_refusal(&call, refusal, out);
            return;
        };
        out.push(Out::ToUpstream(splice.apply(call.bytes())));
        self.progress.runs_again(call.progress_token());
        self.ours.insert(id.clone(), client_id.clone());
        let rerun = Rerun { call, id };
        self.open.insert(client_id.borrow(), Open::Rerun(Box::new(rerun)));
    }

    pub(super) fn end_with_refusal(&mut self, call: &Call, refusal: &Kept, out: &mut Vec<Out>) {
        self.progress.forget(call.progress_token());
        let for_call = call.id().map(Id::to_owned);
        out.push(Out::ToClient { for_call, frame: refusal.bytes().to_vec() });
    }

    /// Nobody answered in time.
    pub(super) fn timed_out(&mut self, ask: &str, now: Now, out: &mut Vec<Out>) {
        let Some(asking) = self.take_asking(ask) else { return self.check_timed_out(ask, out) };
        if asking.rail() == Rail::Inbox && !asking.is_cut() {
            self.patience.unanswered();
        }
        let latency = Some(millis(asking.asked.until(now.boot)));
        let record =
            asking.subject.record_of(asking.rail(), Outcome::Timeout, Provenance::System, latency, None);
        take_back(&asking, "nobody answered in time", Withdrawal::TimedOut, record, out);
        self.end_with_refusal(&asking.call, &asking.refusal, out);
    }

    /// A client has ended a wait for the inbox: after a while that says that nobody answers.
    pub(super) fn note_given_up(&mut self, since: Moment, now: Now) {
        if since.until(now.boot) >= GIVEN_UP {
            self.patience.unanswered();
        }
    }

    /// The question dies with what it was about. Its call has left the open ones already.
    pub(super) fn withdraw(
        &mut self,
        asking: &Asking,
        why: &str,
        reason: &'static str,
        provenance: Provenance,
        now: Now,
        out: &mut Vec<Out>,
    ) {
        self.forget_ask(asking);
        self.progress.forget(asking.call.progress_token());
        let is_cancelled = provenance == Provenance::Client;
        if is_cancelled && asking.rail() == Rail::Inbox {
            self.note_given_up(asking.asked, now);
        }
        let latency = Some(millis(asking.asked.until(now.boot)));
        let record =
            asking.subject.record_of(asking.rail(), Outcome::Withdrawn, provenance, latency, Some(reason));
        let withdrawal = if is_cancelled { Withdrawal::Cancelled } else { Withdrawal::Gone };
        take_back(asking, why, withdrawal, record, out);
    }
}

/// Tells whoever is asked that the question is over.
fn take_back(asking: &Asking, words: &str, why: Withdrawal, record: Record, out: &mut Vec<Out>) {
    match asking.surface {
        Surface::Form => {
            let frame = reply::cancelled(&quoted(&asking.ask), words);
            out.push(Out::ToClient { for_call: asking.call.id().map(Id::to_owned), frame });
            out.push(Out::Record(record));
        }
        Surface::Inbox(_) => {
            out.push(Out::withdraw(&asking.ask, why, record));
        }
    }
}

/// Whether a question goes on to the next rail that ended so, and that nobody was shown.
pub(super) fn falls_on(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Decline | Outcome::Cancel | Outcome::Error)
}

pub(super) fn millis(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Whether an error says that the client cannot show the question, which is evidence that nobody saw it (mcp.md §7).
pub(super) fn says_not_shown(error: &str) -> bool {
    let message = member_named(error, "message").and_then(|text| Scanner::new(text.as_bytes()).string().ok());
    member_named(error, "code") == Some(METHOD_NOT_FOUND)
        || message.is_some_and(|message| message.text().to_lowercase().contains(NO_FIELDS))
}
