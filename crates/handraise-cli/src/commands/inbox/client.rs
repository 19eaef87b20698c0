//! The calls that the terminal makes: asks, answers, and what the inbox said to them.

use anyhow::{Context as _, bail};
use handraise_api::{
    ask::{AnswerRequest, Ask, AskList, BatchEntry, BatchRequest, SeenRequest},
    error::{ErrorBody, ErrorResponse, NotFoundResponse},
};
use hyper::StatusCode;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::words;
use crate::{
    Context,
    inbox::{Inbox, Reached, Unanswered},
    local::{self, Commands},
};

/// Asks in one page of a search through all of them.
const PAGE: u32 = 100;

/// How many of the asks that have ended are looked through for a short id: as many as `list` can show.
const ENDED: u32 = 500;

/// The inbox of the data directory, which has to run.
pub(crate) struct Client {
    inbox: Inbox,
    place: String,
    /// How it is started.
    commands: Commands,
}

/// What the inbox said to a submission.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It was delivered, now or before.
    Delivered(Box<Ask>),
    /// The holder refused it; the ask is still open (F10).
    Invalid(ErrorBody),
    /// The ask had ended.
    Ended(Box<NotFoundResponse>),
    /// The holder is not connected; nothing was sent, the ask is still open (AC-20a).
    NotConnected,
    /// It was sent, and nobody knows yet whether it counted.
    Unknown,
}

impl Client {
    /// The inbox that wrote `inbox.json`.
    ///
    /// # Errors
    /// When none has run there.
    pub(crate) fn open(context: &Context) -> anyhow::Result<Self> {
        let data_dir = context.settings.data_dir()?;
        let place = data_dir.display().to_string();
        match local::read(data_dir, &context.commands)? {
            Some(file) => Ok(Self { inbox: Inbox::new(&file), place, commands: context.commands.clone() }),
            None => bail!(
                "no inbox has run in {place}; start one with {}, or name its --data-dir DIR",
                context.commands.quoted("up")
            ),
        }
    }

    /// The same with another token.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self {
            inbox: self.inbox.with_token(token),
            place: self.place.clone(),
            commands: self.commands.clone(),
        }
    }

    /// The inbox itself, for its events.
    pub(crate) fn as_inbox(&self) -> Inbox {
        self.inbox.clone()
    }

    /// The command that shows an ask of this inbox, in the quotes of a remedy.
    pub(crate) fn shows(&self, id: &str) -> String {
        self.commands.quoted(&format!("inbox show {id}"))
    }

    /// What is said of an inbox that does not run.
    pub(crate) fn not_running(&self) -> anyhow::Error {
        anyhow::anyhow!(
            "the inbox in {} is not running; start it with {}",
            self.place,
            self.commands.quoted("up")
        )
    }

    /// A call that reads.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        match self.inbox.get(path).await? {
            Reached::Answer(answer) => Ok(answer),
            Reached::NotRunning => Err(self.not_running()),
        }
    }

    /// A call that changes something.
    pub(crate) async fn post<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> anyhow::Result<T> {
        match self.inbox.post(path, body).await? {
            Reached::Answer(answer) => Ok(answer),
            Reached::NotRunning => Err(self.not_running()),
        }
    }

    /// Deletes something, which may have gone already.
    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<()> {
        self.inbox.delete(path).await.map(|_| ())
    }

    /// One ask with its history, as it came.
    pub(crate) async fn ask(&self, id: &str) -> anyhow::Result<Value> {
        self.get(&format!("/api/v1/asks/{id}")).await
    }

    /// One page of asks.
    pub(crate) async fn page(&self, query: &str) -> anyhow::Result<AskList> {
        self.get(&format!("/api/v1/asks?{query}")).await
    }

    /// Every open ask.
    pub(crate) async fn open_asks(&self) -> anyhow::Result<Vec<Ask>> {
        let mut asks = Vec::new();
        let mut query = format!("state=open&limit={PAGE}");
        loop {
            let page = self.page(&query).await?;
            asks.extend(page.asks);
            match page.next_cursor {
                Some(cursor) => query = format!("state=open&limit={PAGE}&cursor={}", escaped(&cursor)),
                None => return Ok(asks),
            }
        }
    }

    /// The id of the ask that is meant by an id, or by the unambiguous beginning or end of an open one's, or else of one
    /// of the latest that have ended.
    ///
    /// # Errors
    /// When it is no id, or none or several asks fit.
    pub(crate) async fn find(&self, given: &str) -> anyhow::Result<String> {
        if !is_id(given) {
            let list = self.commands.quoted("inbox list");
            bail!("\"{}\" is no id; {list} shows them", words::name(given));
        }
        if given.len() >= WHOLE_ID {
            return Ok(given.to_owned());
        }
        if let Some(id) = choose(given, "open", &self.open_asks().await?)? {
            return Ok(id);
        }
        let ended = self.page(&format!("state=settled&limit={ENDED}")).await?;
        match choose(given, "ended", &ended.asks)? {
            Some(id) => Ok(id),
            None => bail!(
                "no ask that is open, and none of the {ENDED} that ended last, has an id that begins or ends with \
                 \"{given}\"; {} shows them, and an older one goes by its whole id",
                self.commands.quoted("inbox list")
            ),
        }
    }

    /// Sends a submission and takes the verdict.
    ///
    /// # Errors
    /// When the inbox cannot be reached, or did not take it up for a reason that is no verdict.
    pub(crate) async fn answer(&self, id: &str, answer: &AnswerRequest) -> anyhow::Result<Verdict> {
        match self.inbox.exchange(&format!("/api/v1/asks/{id}/answer"), answer).await {
            Ok(Reached::Answer((status, body))) => verdict(status, &body),
            Ok(Reached::NotRunning) => Err(self.not_running()),
            // The inbox may have sent it on before it went away.
            Err(error) if error.is::<Unanswered>() => Ok(Verdict::Unknown),
            Err(error) => Err(error),
        }
    }

    /// Sends several submissions as one: all of them or none (S44). The asks as they ended, in the same order.
    ///
    /// # Errors
    /// When the inbox cannot be reached, or none counts as answered.
    pub(crate) async fn answer_together(&self, submissions: Vec<BatchEntry>) -> anyhow::Result<Vec<Ask>> {
        #[derive(serde::Deserialize)]
        struct Answered {
            asks: Vec<Ask>,
        }
        let batch = BatchRequest { submissions };
        match self.inbox.exchange("/api/v1/asks/answer-batch", &batch).await? {
            Reached::Answer((StatusCode::OK, body)) => {
                let Answered { asks } =
                    serde_json::from_slice(&body).context("the inbox's answer is not understood")?;
                Ok(asks)
            }
            Reached::Answer((status, body)) => Err(refused(status, &body)),
            Reached::NotRunning => Err(self.not_running()),
        }
    }

    /// Says that a terminal has a question on screen (S15).
    ///
    /// # Errors
    /// When the inbox does not take it up; answers then count as a client's.
    pub(crate) async fn seen(&self, id: &str, digest: &str) -> anyhow::Result<()> {
        let seen = SeenRequest { digest: digest.to_owned(), surface: Some("terminal".to_owned()) };
        match self.inbox.exchange(&format!("/api/v1/asks/{id}/seen"), &seen).await? {
            Reached::Answer((StatusCode::NO_CONTENT, _)) => Ok(()),
            Reached::Answer((status, body)) => Err(refused(status, &body)),
            Reached::NotRunning => Err(self.not_running()),
        }
    }
}

/// Ids of this length are whole: those that we mint are UUIDs.
const WHOLE_ID: usize = 36;

fn is_id(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// A cursor as a part of a query.
pub(crate) fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

/// The one that is meant of these asks, which are all open or all ended; `None` where none fits.
fn choose(given: &str, which: &str, asks: &[Ask]) -> anyhow::Result<Option<String>> {
    const MOST: usize = 5;
    if let Some(ask) = asks.iter().find(|ask| ask.id == given) {
        return Ok(Some(ask.id.clone()));
    }
    let fits: Vec<&Ask> =
        asks.iter().filter(|ask| ask.id.starts_with(given) || ask.id.ends_with(given)).collect();
    match fits.as_slice() {
        [one] => Ok(Some(one.id.clone())),
        [] => Ok(None),
        several => {
            let shown: Vec<String> = several
                .iter()
                .take(MOST)
                .map(|ask| format!("\n  {}  {}", ask.id, words::heading(&ask.content.message, 60)))
                .collect();
            let more = several.len().saturating_sub(MOST);
            let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
            bail!(
                "{} {which} asks have an id that begins or ends with \"{given}\":{}{more}",
                several.len(),
                shown.concat()
            )
        }
    }
}

fn verdict(status: StatusCode, body: &[u8]) -> anyhow::Result<Verdict> {
    let not_understood = || "the inbox's answer is not understood; are both of one version?";
    let error = || serde_json::from_slice::<ErrorResponse>(body).map(|answer| answer.error);
    Ok(match status {
        StatusCode::OK => Verdict::Delivered(serde_json::from_slice(body).with_context(not_understood)?),
        StatusCode::UNPROCESSABLE_ENTITY => Verdict::Invalid(error().with_context(not_understood)?),
        StatusCode::NOT_FOUND => Verdict::Ended(serde_json::from_slice(body).with_context(not_understood)?),
        StatusCode::SERVICE_UNAVAILABLE => Verdict::NotConnected,
        StatusCode::GATEWAY_TIMEOUT => Verdict::Unknown,
        other => return Err(refused(other, body)),
    })
}

fn refused(status: StatusCode, body: &[u8]) -> anyhow::Error {
    match serde_json::from_slice::<ErrorResponse>(body) {
        Ok(answer) => anyhow::anyhow!("the inbox says: {}", words::brief(&answer.error.message, 1_000)),
        Err(_) => anyhow::anyhow!("the inbox answered with {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::inbox::sample;

    #[test]
    fn an_id_may_be_cut_where_it_stays_unambiguous() {
        let asks = ["0192aaaa-0001", "0192aaaa-0002", "0192bbbb-0003"]
            .map(|id| Ask { id: id.into(), ..sample::ask() });
        let choose = |given: &str| choose(given, "open", &asks).map_err(|error| error.to_string());
        assert_eq!(choose("0003").unwrap().unwrap(), "0192bbbb-0003");
        assert_eq!(choose("0192b").unwrap().unwrap(), "0192bbbb-0003");
        assert_eq!(choose("0192aaaa-0001").unwrap().unwrap(), "0192aaaa-0001");
        assert!(choose("0192").unwrap_err().starts_with("3 open asks"));
        assert_eq!(choose("9"), Ok(None));
        for wrong in ["", "a/b", "../x", "é", &"x".repeat(65)] {
            assert!(!is_id(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_verdict_is_told_by_its_status() {
        let error = |code: &str| {
            format!(
                r#"{{"error":{{"code":"{code}","message":"m\u001b"}},"settlement":null,"recorded":false}}"#
            )
        };
        assert!(matches!(
            verdict(StatusCode::NOT_FOUND, error("NOT_FOUND").as_bytes()),
            Ok(Verdict::Ended(_))
        ));
        let status = StatusCode::SERVICE_UNAVAILABLE;
        assert!(matches!(
            verdict(status, error("HOLDER_NOT_CONNECTED").as_bytes()),
            Ok(Verdict::NotConnected)
        ));
        let other = verdict(StatusCode::FORBIDDEN, error("FORBIDDEN").as_bytes()).unwrap_err();
        assert_eq!(other.to_string(), "the inbox says: m\\u{1b}");
        assert!(verdict(StatusCode::OK, b"<html>").is_err());
        assert_eq!(escaped("a+b/c=="), "a%2Bb%2Fc%3D%3D");
    }
}
