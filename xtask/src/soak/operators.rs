//! Operators who answer over the HTTP API: each takes what is open, so that most asks get two answers.

use std::{collections::BTreeSet, time::Duration};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{
    chance::Chance,
    judge::{Submission, Told},
    run::Run,
};
use crate::http::Connection;

/// What an operator needs to work.
pub(super) struct Operator {
    pub(super) name: String,
    pub(super) token: String,
}

/// How an operator goes about an ask, in percent of the asks that it sees.
const LEAVES: u64 = 4;
const TRIES_WITHOUT_HOLDER: u64 = 10;
const SKIPS: u64 = 12;
const REPEATS: u64 = 6;
const ANSWERS_AGAIN: u64 = 6;

impl Operator {
    /// Answers until the run is closed.
    pub(super) fn work(&self, run: &Run, mut chance: Chance) {
        let mut connection = None;
        let mut done = BTreeSet::new();
        let mut sent = 0_usize;
        while !run.is_closed() {
            std::thread::sleep(Duration::from_millis(20 + chance.below(120)));
            // One that breaks is that of an inbox that has ended; another one is there soon.
            let Ok(mut open) =
                connection.take().map_or_else(|| Connection::open(&run.url(), &self.token), Ok)
            else {
                continue;
            };
            let looked = open.call("GET", "/api/v1/asks?state=open&limit=500", "");
            let Ok(page) = looked else { continue };
            let asks = page["asks"].as_array().cloned().unwrap_or_default();
            let mut is_open = true;
            for ask in asks.iter().filter(|ask| ask["state"] == "open") {
                let id = ask["id"].as_str().unwrap_or_default().to_owned();
                // The page shows that a holder is gone; somebody tries it all the same.
                let tries = ask["holder_connected"] == true || chance.below(100) < TRIES_WITHOUT_HOLDER;
                if done.contains(&id) || !tries {
                    continue;
                }
                // Both operators leave the same ones alone, and then time answers.
                if Chance::new(run.seed, seeded_by(ask)).below(100) < LEAVES {
                    continue;
                }
                is_open = self.handle(run, &mut open, ask, &id, &mut sent, &mut chance, &mut done).is_ok();
                if !is_open {
                    break;
                }
            }
            connection = is_open.then_some(open);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what one look hands on")]
    fn handle(
        &self,
        run: &Run,
        connection: &mut Connection,
        ask: &Value,
        id: &str,
        sent: &mut usize,
        chance: &mut Chance,
        done: &mut BTreeSet<String>,
    ) -> anyhow::Result<()> {
        let question = ask["questions"][0]["id"].as_str().context("an ask without a question")?;
        let text = |sent: &mut usize| {
            *sent += 1;
            format!("{}-{sent}", self.name)
        };
        let is_skip = chance.below(100) < SKIPS;
        let first = (!is_skip).then(|| text(sent));
        let told = self.submit(run, connection, id, question, first.clone(), false)?;
        if matches!(told, Told::NotDelivered | Told::Unknown) {
            // Once the inbox says that it is open, another answer may go.
            return Ok(());
        }
        done.insert(id.to_owned());
        if chance.below(100) < REPEATS {
            self.submit(run, connection, id, question, first, true)?;
        }
        if chance.below(100) < ANSWERS_AGAIN {
            let again = Some(text(sent));
            self.submit(run, connection, id, question, again, false)?;
        }
        Ok(())
    }

    /// Sends one submission and notes what was told.
    fn submit(
        &self,
        run: &Run,
        connection: &mut Connection,
        id: &str,
        question: &str,
        text: Option<String>,
        is_repeat: bool,
    ) -> anyhow::Result<Told> {
        let body = match &text {
            Some(text) => json!({"answers": [
                {"question_id": question, "selected_options": [], "custom_text": text},
            ]}),
            None => json!({"answers": [], "rejected": true}),
        };
        let outcome = connection.exchange("POST", &format!("/api/v1/asks/{id}/answer"), &body.to_string());
        let told = match &outcome {
            Ok((200, ask)) if ask["replayed"] == true => Told::Replayed,
            Ok((200, _)) => Told::Won,
            Ok((404, _)) => Told::NotFound,
            Ok((503, _)) => Told::NotDelivered,
            Ok((504, _)) => Told::Unknown,
            Ok((status, _)) => Told::Other(*status),
            Err(_) => Told::Nothing,
        };
        let answer = outcome.as_ref().map(|(_, answer)| answer.clone()).unwrap_or_default();
        if let Told::Other(status) = told {
            run.note(&format!("{} was told {status} about {id}: {answer}", self.name));
        }
        // A repeat changes nothing, and what it is told depends on whether the holder is still there: either that it
        // counts, or how the ask ended.
        if !is_repeat || !matches!(told, Told::NotFound | Told::NotDelivered) {
            run.submitted(Submission { ask: id.to_owned(), text, told });
        }
        outcome.map(|_| told)
    }
}

/// The same number for the same ask.
fn seeded_by(ask: &Value) -> u64 {
    let name = ask["message"].as_str().unwrap_or_default();
    name.bytes().fold(7, |hash, byte| hash * 31 % 1_000_003 + u64::from(byte))
}
