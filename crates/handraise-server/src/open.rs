//! What an answer has to know of an open ask before it can be written and forwarded, kept at hand so that nobody waits
//! for the database twice. The database decides; an ask that is not at hand is read there.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use handraise_api::{
    ask::AskContent,
    words::{Source, Who},
};

/// What never changes of an open ask (S9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Which instance owns it.
    pub(crate) instance: String,
    /// Where it comes from.
    pub(crate) source: Source,
    /// Whose answer counts.
    pub(crate) who: Who,
    /// The person whose ask it is (S16).
    pub(crate) owner: Option<String>,
    /// The questions whose answers are not to be kept (S33).
    secrets: Vec<String>,
}

impl Facts {
    pub(crate) fn of(content: &AskContent, instance: &str, owner: Option<&str>) -> Self {
        let secrets = content.questions.iter().filter(|question| question.secret);
        Self {
            instance: instance.to_owned(),
            source: content.source,
            who: content.who,
            owner: owner.map(str::to_owned),
            secrets: secrets.map(|question| question.id.clone()).collect(),
        }
    }

    pub(crate) fn is_secret(&self, question: &str) -> bool {
        self.secrets.iter().any(|secret| secret == question)
    }
}

/// The asks that holders of this run have announced and that have not ended.
#[derive(Debug, Default)]
pub(crate) struct OpenAsks(Mutex<HashMap<String, Arc<Facts>>>);

impl OpenAsks {
    /// Notes an ask that is announced, before it is written: its ending comes after that. Another instance's stays as it
    /// is. Returns whether it was not at hand before.
    pub(crate) fn note(&self, ask: &str, content: &AskContent, instance: &str, owner: Option<&str>) -> bool {
        let mut asks = self.asks();
        let is_new = !asks.contains_key(ask);
        if is_new {
            asks.insert(ask.to_owned(), Arc::new(Facts::of(content, instance, owner)));
        }
        is_new
    }

    /// An ask ended, or was not taken.
    pub(crate) fn forget(&self, ask: &str) {
        self.asks().remove(ask);
    }

    pub(crate) fn get(&self, ask: &str) -> Option<Arc<Facts>> {
        self.asks().get(ask).cloned()
    }

    fn asks(&self) -> MutexGuard<'_, HashMap<String, Arc<Facts>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn content() -> AskContent {
        let question = |id: &str, secret: bool| {
            json!({"id": id, "kind": "text", "title": null, "prompt": "?", "required": false, "default": null,
                "allows_text": true, "companion": null, "secret": secret, "choices": [], "constraints": {}})
        };
        serde_json::from_value(json!({
            "source": "elicitation", "mode": "form", "session_id": null, "tool_call_id": null, "message": "?",
            "url": null, "confirm": null, "on_deadline": null, "allows_text_with_selection": true,
            "allows_partial": true, "questions": [question("name", false), question("password", true)]
        }))
        .unwrap()
    }

    #[test]
    fn s33_which_answers_are_secret_is_known_while_an_ask_is_open() {
        let open = OpenAsks::default();
        assert!(open.note("a", &content(), "i", None));
        let facts = open.get("a").unwrap();
        assert_eq!((facts.is_secret("password"), facts.is_secret("name")), (true, false));
        open.forget("a");
        assert_eq!(open.get("a"), None);
    }

    #[test]
    fn s9_an_ask_that_another_instance_announces_stays_its_owners() {
        let open = OpenAsks::default();
        assert!(open.note("a", &content(), "i", None));
        assert!(!open.note("a", &content(), "other", None));
        assert_eq!(open.get("a").unwrap().instance, "i");
    }
}
