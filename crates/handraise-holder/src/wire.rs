//! Frames of the holder stream: text in, text out. Reading is total: whatever comes, it is read or refused.

use std::{borrow::Cow, fmt::Write as _};

use handraise_api::{
    error::{ErrorBody, ErrorCode, ErrorDetail},
    frame::{AskSettled, Ended as EndedPayload, FrameKind, HolderSettlement, MAX_FRAME_BYTES, action},
};
use handraise_core::{
    AskId, Moment,
    form::AnswerError,
    holder::{Announced, Ended, Notice, Verdict},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::settled::InboxRefusal;

/// Room for asks and settlements in one frame, beside what is written around them.
pub(crate) const PART_BYTES: usize = MAX_FRAME_BYTES - 4096;

/// A frame from the inbox.
#[derive(Debug, Deserialize)]
pub(crate) struct Incoming<'a> {
    #[serde(default, borrow)]
    pub(crate) id: Option<Cow<'a, str>>,
    #[serde(rename = "type")]
    pub(crate) kind: FrameKind,
    #[serde(borrow)]
    pub(crate) action: Cow<'a, str>,
    #[serde(default, borrow)]
    payload: Option<&'a RawValue>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

impl<'a> Incoming<'a> {
    /// Reads a frame; `None` when it is none.
    pub(crate) fn read(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Reads the payload; an absent one reads as `null`.
    pub(crate) fn payload<T: Deserialize<'a>>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.payload.map_or("null", RawValue::get))
    }

    /// The asks that a part of the snapshot was taken without, and why. What cannot be read is left out: nothing is known
    /// of it.
    pub(crate) fn refused(&self) -> Vec<(Cow<'a, str>, Failure)> {
        #[derive(Deserialize)]
        struct Taken<'a> {
            #[serde(default, borrow)]
            refused: Vec<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Refused<'a> {
            #[serde(borrow)]
            pending_id: Cow<'a, str>,
            error: ErrorBody,
        }
        let refused = self.payload::<Taken<'a>>().map(|taken| taken.refused).unwrap_or_default();
        let refused =
            refused.into_iter().filter_map(|one| serde_json::from_str::<Refused<'a>>(one.get()).ok());
        refused.map(|Refused { pending_id, error }| (pending_id, Failure::of(Some(error)))).collect()
    }

    /// What went wrong, for a failed response. A code that is not known here is still a failure.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let error = self.error?.get();
        if error == "null" {
            return None;
        }
        let body: Option<ErrorBody> = serde_json::from_str(error).ok();
        Some(Failure::of(body))
    }
}

/// Why the inbox did not take a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// `None`: a code that this version does not know.
    pub(crate) code: Option<ErrorCode>,
    pub(crate) message: Option<String>,
}

impl Failure {
    fn of(body: Option<ErrorBody>) -> Self {
        Self { code: body.as_ref().map(|body| body.code), message: body.map(|body| body.message) }
    }

    /// The inbox's own words, short and plain enough to be shown.
    pub(crate) fn words(&self) -> String {
        plain(self.message.as_deref().unwrap_or("no reason given"), InboxRefusal::LONGEST)
    }
}

/// A request of ours.
pub(crate) fn request(id: u64, action: &str, payload: &str) -> String {
    format!(r#"{{"id":"{id}","type":"request","action":"{action}","payload":{payload}}}"#)
}

/// An event of ours.
pub(crate) fn event(action: &str, payload: &str) -> String {
    format!(r#"{{"type":"event","action":"{action}","payload":{payload}}}"#)
}

/// The text of a payload. Our own types always have one; should that ever fail, `null` is sent and refused there.
pub(crate) fn json(payload: &impl Serialize) -> String {
    serde_json::to_string(payload).unwrap_or_else(|_| "null".into())
}

/// A notice as a request.
pub(crate) fn notice(id: u64, notice: &Notice, now: Moment) -> String {
    match notice {
        Notice::Snapshot(part) => {
            let bytes: usize = part.asks.iter().map(|ask| ask.announcement.len() + 128).sum();
            let mut payload = String::with_capacity(bytes + 512 * part.settlements.len() + 256);
            let _ = write!(payload, r#"{{"seq":{},"last":{},"asks":["#, part.seq, part.last);
            for (n, ask) in part.asks.iter().enumerate() {
                payload.push_str(if n == 0 { "" } else { "," });
                announce(&mut payload, ask);
            }
            payload.push_str(r#"],"settlements":"#);
            let settlements: Vec<_> =
                part.settlements.iter().map(|(ask, ended)| settled(ask, ended, now)).collect();
            payload.push_str(&json(&settlements));
            payload.push('}');
            request(id, action::SNAPSHOT, &payload)
        }
        Notice::Opened(ask) => {
            let mut payload = String::with_capacity(ask.announcement.len() + 256);
            payload.push_str(r#"{"ask":"#);
            announce(&mut payload, ask);
            payload.push('}');
            request(id, action::ASK_OPENED, &payload)
        }
        Notice::Settled(ask, ended) => request(id, action::ASK_SETTLED, &json(&settled(ask, ended, now))),
    }
}

/// Writes the announcement with the time that is left, which is all that changes from one telling to the next.
fn announce(out: &mut String, ask: &Announced) {
    let Some(rest) = ask.announcement.strip_prefix('{') else { return out.push_str(&ask.announcement) };
    out.push('{');
    if let Some(left) = ask.left {
        let millis = left.as_millis();
        let _ = write!(out, r#""deadline_ms":{millis},"#);
        if ask.is_parked {
            let _ = write!(out, r#""parked_ms":{millis},"#);
        }
    }
    out.push_str(rest);
}

fn settled(ask: &AskId, ended: &Ended, now: Moment) -> AskSettled {
    AskSettled {
        pending_id: ask.to_string(),
        settlement: HolderSettlement {
            outcome: ended.outcome.into(),
            provenance: ended.provenance.into(),
            rail: handraise_api::words::Rail::Inbox,
            wire: ended.wire.map(Into::into),
            reason: ended.reason.map(|reason| reason.as_str().into()),
            ago_ms: u64::try_from(ended.at.until(now).as_millis()).unwrap_or(u64::MAX),
        },
        submission_id: ended.submission.as_ref().map(ToString::to_string),
    }
}

/// A response of ours.
#[derive(Serialize)]
struct Response<'a, P> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: FrameKind,
    action: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<P>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody>,
}

fn respond<P: Serialize>(id: &str, action: &str, payload: Option<P>, error: Option<ErrorBody>) -> String {
    json(&Response { id, kind: FrameKind::Response, action, payload, error })
}

/// Done.
pub(crate) fn success(id: &str, action: &str) -> String {
    respond(id, action, Some(handraise_api::frame::Success { success: true }), None)
}

/// Not done.
pub(crate) fn failure(id: &str, action: &str, error: ErrorBody) -> String {
    respond(id, action, None::<()>, Some(error))
}

/// A verdict on the submission to `ask`. The ask is named in the message: a batch has several.
pub(crate) fn verdict(id: &str, action: &str, ask: &AskId, verdict: Verdict, now: Moment) -> String {
    match verdict {
        Verdict::Delivered => success(id, action),
        Verdict::Invalid(errors) => {
            let message = format!("ask {ask}: the answers do not fit its questions; it is still open");
            let details = errors.into_iter().map(detail).collect();
            failure(id, action, ErrorBody { code: ErrorCode::Invalid, message, details })
        }
        Verdict::Ended(ended) => {
            let message = match &ended {
                Some(ended) => format!("ask {ask} had ended as {}", ended.outcome),
                None => format!("ask {ask} is not known to its holder"),
            };
            let payload = EndedPayload { ended: ended.map(|ended| settled(ask, &ended, now)) };
            respond(id, action, Some(payload), Some(ErrorBody::new(ErrorCode::NotFound, message)))
        }
        Verdict::Unseen => {
            let message = format!("ask {ask}: that submission never arrived and will not be delivered");
            failure(id, action, ErrorBody::new(ErrorCode::Unseen, message))
        }
        Verdict::Unsuitable(why) => {
            failure(id, action, ErrorBody::new(ErrorCode::BadRequest, format!("ask {ask}: {why}")))
        }
    }
}

fn detail(error: AnswerError) -> ErrorDetail {
    let AnswerError { question_id, rule, message } = error;
    ErrorDetail { question_id, rule: rule.as_str().into(), message }
}

/// Words of the other side, short enough and plain enough for a log (S42).
pub(crate) fn shorten(text: &str) -> String {
    plain(text, 200)
}

/// At most so many characters of what the other side says, controls made spaces.
pub(crate) fn plain(text: &str, most: usize) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(most).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use handraise_api::frame::{AskOpened, Frame, SnapshotPart as WirePart};
    use handraise_core::{Source, form::Form, holder::SnapshotPart};
    use proptest::prelude::*;

    use super::*;
    use crate::NewAsk;

    fn announced() -> Announced {
        let choice = |value: &str| handraise_core::Choice {
            value: value.into(),
            label: value.into(),
            description: None,
            preview: None,
        };
        let ask = NewAsk {
            source: Source::Permission,
            mode: handraise_core::Mode::Form,
            session_id: Some("s\"1".into()),
            tool_call_id: None,
            message: "A \"quoted\"\nmessage \u{1F600}".into(),
            url: None,
            confirm: None,
            on_deadline: None,
            form: Form::permission("Run it?", vec![choice("allow"), choice("reject")]).unwrap(),
            rules: handraise_core::form::AnswerRules::for_source(Source::Permission),
            single_use: vec![],
            client: None,
            server: None,
            timeout: None,
        };
        let ask = ask.into_engine(AskId::new("ask-1").unwrap(), handraise_api::words::Who::Operator).unwrap();
        let left = Some(Duration::from_millis(1234));
        Announced { id: ask.id, announcement: ask.announcement, left, is_parked: true }
    }

    #[test]
    fn an_announcement_says_how_long_it_is_still_open() {
        let text = notice(7, &Notice::Opened(announced()), Moment::default());
        let frame: Frame = serde_json::from_str(&text).unwrap();
        assert_eq!((frame.id.as_deref(), frame.action.as_str()), (Some("7"), action::ASK_OPENED));
        let opened: AskOpened = serde_json::from_str(frame.payload.unwrap().get()).unwrap();
        assert_eq!((opened.ask.deadline_ms, opened.ask.parked_ms), (Some(1234), Some(1234)));
        assert_eq!(opened.ask.content.message, "A \"quoted\"\nmessage \u{1F600}");
        assert_eq!(opened.ask.content.questions.len(), 1);
    }

    #[test]
    fn a_snapshot_part_reads_back() {
        let ended = Ended {
            outcome: handraise_core::Outcome::Timeout,
            provenance: handraise_core::Provenance::System,
            wire: Some(handraise_core::WireAction::Decline),
            reason: None,
            submission: None,
            at: Moment::from_millis(10),
        };
        let settlements = vec![(AskId::new("ask-0").unwrap(), ended)];
        let part = SnapshotPart { seq: 3, last: true, asks: vec![announced(), announced()], settlements };
        let text = notice(1, &Notice::Snapshot(part), Moment::from_millis(15));
        let frame: Frame = serde_json::from_str(&text).unwrap();
        let part: WirePart = serde_json::from_str(frame.payload.unwrap().get()).unwrap();
        assert_eq!((part.seq, part.last, part.asks.len()), (3, true, 2));
        assert_eq!(part.settlements[0].settlement.ago_ms, 5);
    }

    #[test]
    fn words_of_the_other_side_are_made_plain() {
        assert_eq!(shorten("a\u{1b}[31mb\nc"), "a [31mb c");
        assert_eq!(shorten(&"x".repeat(1000)).len(), 200);
    }

    #[test]
    fn a_code_of_the_future_is_still_a_failure() {
        let text =
            r#"{"id":"1","type":"response","action":"ask.opened","error":{"code":"NEW","message":"x"}}"#;
        assert_eq!(Incoming::read(text).unwrap().failure(), Some(Failure { code: None, message: None }));
        let fine = r#"{"id":"1","type":"response","action":"ask.opened","payload":{},"error":null}"#;
        assert_eq!(Incoming::read(fine).unwrap().failure(), None);
    }

    #[test]
    fn nesting_without_end_is_read_without_recursion() {
        let deep = format!(
            r#"{{"type":"event","action":"x","payload":{}{}}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        if let Some(frame) = Incoming::read(&deep) {
            assert!(frame.payload::<handraise_api::frame::Respond>().is_err());
        }
    }

    proptest! {
        #[test]
        fn reading_a_frame_is_total(text in ".{0,200}") {
            read_all(&text);
        }

        #[test]
        fn reading_a_damaged_frame_is_total(cut in 0..600usize, flip in 0..600usize, with in any::<char>()) {
            let text = concat!(
                r#"{"id":"9","type":"request","action":"agent.elicitations.respond","payload":{"pending_id":"a","#,
                r#""submission_id":"b","answers":[{"question_id":"q","selected_options":["x"],"custom_text":"é"}],"#,
                r#""rejected":false,"reject_reason":"","by":"me","provenance":"human"},"error":{"code":"INVALID","#,
                r#""message":"m","details":[{"question_id":"q","rule":"r","message":"m"}]}}"#
            );
            let mut damaged: Vec<char> = text.chars().take(cut.min(text.len())).collect();
            if let Some(at) = damaged.get_mut(flip) {
                *at = with;
            }
            read_all(&damaged.into_iter().collect::<String>());
        }
    }

    fn read_all(text: &str) {
        use handraise_api::frame::{
            Respond, RespondBatch, RespondPermission, SessionCancel, SessionPrompt, VerdictQuery, Welcome,
        };
        if let Some(frame) = Incoming::read(text) {
            let _ = frame.failure();
            let _ = frame.payload::<Respond>();
            let _ = frame.payload::<RespondBatch>();
            let _ = frame.payload::<RespondPermission>();
            let _ = frame.payload::<VerdictQuery>();
            let _ = frame.payload::<SessionPrompt>();
            let _ = frame.payload::<SessionCancel>();
            let _ = frame.payload::<Welcome>();
        }
    }
}
