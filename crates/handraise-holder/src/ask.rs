//! An ask as the asking side hands it in, and its announcement.

use std::{sync::Arc, time::Duration};

use handraise_api::{
    ask::{AskContent, Confirm, Implementation},
    frame::AnnouncedAsk,
    words::Who,
};
use handraise_core::{
    AskId, Mode, OnDeadline, Source,
    form::{AnswerRules, Form},
    holder::{self, Refused},
};

/// What is to be asked. Immutable once opened (S9).
#[derive(Debug, Clone)]
pub struct NewAsk {
    /// Where it comes from.
    pub source: Source,
    /// Form or link.
    pub mode: Mode,
    /// The inbox-wide session it belongs to.
    pub session_id: Option<String>,
    /// The agent's tool call around it.
    pub tool_call_id: Option<String>,
    /// The request's own words.
    pub message: String,
    /// The page to open, in `url` mode.
    pub url: Option<String>,
    /// The guarded call, for a confirm.
    pub confirm: Option<Confirm>,
    /// What the asking side does at the deadline.
    pub on_deadline: Option<OnDeadline>,
    /// Its questions, and how answers to them become content.
    pub form: Form,
    /// Which answers are valid; announced to the inbox (F3, F6).
    pub rules: AnswerRules,
    /// Values that a batch may select (S44): options that hold for this one time. Only for `permission`.
    pub single_use: Vec<String>,
    /// The agent or client, by its own word.
    pub client: Option<Implementation>,
    /// The server behind the question, by its own word.
    pub server: Option<String>,
    /// How long until it is declined; `None`: no deadline.
    pub timeout: Option<Duration>,
}

/// What is demanded of whoever accepts an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Demands {
    /// Whose answers count (S16); as the holder's settings say where nothing is said.
    pub who: Option<Who>,
    /// Only an acceptance counts with which the inbox says that a person was shown the question (S15). Everybody may decline.
    pub human: bool,
}

impl NewAsk {
    /// The engine's view of it, with the announcement written out once: it never changes again.
    pub(crate) fn into_engine(self, id: AskId, who: Who) -> Result<holder::NewAsk, Refused> {
        let Self {
            source,
            mode,
            session_id,
            tool_call_id,
            message,
            url,
            confirm,
            on_deadline,
            form,
            rules,
            single_use,
            client,
            server,
            timeout,
        } = self;
        let content = AskContent {
            source: source.into(),
            mode: mode.into(),
            session_id: session_id.clone(),
            tool_call_id,
            message,
            url,
            confirm,
            on_deadline: on_deadline.map(Into::into),
            who,
            allows_text_with_selection: rules.allows_text_with_selection,
            allows_partial: rules.allows_partial,
            questions: form.questions().iter().map(Into::into).collect(),
        };
        let announced =
            AnnouncedAsk { id: id.to_string(), deadline_ms: None, parked_ms: None, client, server, content };
        // What cannot be written fits no frame.
        let announcement: Arc<str> = serde_json::to_string(&announced).map_err(|_| Refused::TooLarge)?.into();
        Ok(holder::NewAsk { id, source, session: session_id, announcement, form, rules, single_use, timeout })
    }
}
