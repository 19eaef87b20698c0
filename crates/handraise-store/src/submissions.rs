//! What operators sent, and what holders said to it.

use handraise_api::{
    ask::{Answer, Ask},
    words::{Outcome, Provenance, Rail, WireAction},
};
use jiff::Timestamp;

use crate::{
    Now, Store, StoreError,
    error::Failure,
    lists::select_asks,
    on,
    rows::{self, AskRow, OwnedAsk},
    settle::{Ending, Settled, bind_ending, settle},
    statement::{Sql, Statement},
};

/// A submission before it is forwarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSubmission {
    /// Minted by the inbox.
    pub id: String,
    /// Which ask.
    pub ask: String,
    /// The id of the token that it came with.
    pub token: String,
    /// That token's name.
    pub by: String,
    /// `human` or `client` (S15).
    pub provenance: Provenance,
    /// What was answered, secrets as `•` already (S33).
    pub answers: Vec<Answer>,
    /// Whether it is a skip.
    pub rejected: bool,
    /// Why it is a skip.
    pub reject_reason: String,
    /// Equal for equal submissions of one token, secrets included.
    pub fingerprint: String,
}

/// What a holder said to a submission, or what kept it from saying anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It won.
    Delivered,
    /// The ask was unknown to the holder, or had ended.
    NotFound,
    /// The answers break a rule; the ask is still open.
    Invalid,
    /// The holder refused it for another reason; the ask is still open.
    Refused,
    /// It never left the inbox.
    NotDelivered,
    /// The holder never saw it.
    Unseen,
}

impl Verdict {
    const ALL: [Self; 6] =
        [Self::Delivered, Self::NotFound, Self::Invalid, Self::Refused, Self::NotDelivered, Self::Unseen];

    /// The word in the database and in an ask's history.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::NotFound => "not_found",
            Self::Invalid => "invalid",
            Self::Refused => "refused",
            Self::NotDelivered => "not_delivered",
            Self::Unseen => "unseen",
        }
    }
}

/// A submission as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSubmission {
    /// Minted by the inbox.
    pub id: String,
    /// Which ask.
    pub ask: String,
    /// The id of the token that it came with.
    pub token: String,
    /// See [`NewSubmission::fingerprint`].
    pub fingerprint: String,
    /// Whether it is a skip.
    pub rejected: bool,
    /// The verdict, when there is one.
    pub verdict: Option<Verdict>,
}

/// When a question was painted, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Painted {
    /// `page` or `terminal`.
    pub surface: String,
    /// On the boot clock, in milliseconds.
    pub boot_millis: i64,
}

/// What noting a verdict came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Replied {
    /// The ask as it is now.
    pub ask: Ask,
    /// The instance that owns it.
    pub instance: String,
    /// Whether it ended by this.
    pub settled_now: bool,
}

macro_rules! insert_one {
    () => {
        "INSERT INTO submissions (id, ask, instance, token, by_name, provenance, answers, rejected, \
    reject_reason, fingerprint, submitted_at) \
    SELECT $1, id, instance, $3, $4, $5, $6, $7, $8, $9, $10 FROM asks WHERE id = $2"
    };
}
const INSERT: Sql = &[concat!(insert_one!(), " RETURNING (SELECT state FROM asks WHERE id = $2)")];
/// The first verdict stands; a later one only finds the ask.
macro_rules! note {
    () => {
        "UPDATE submissions SET verdict = COALESCE(verdict, $2), verdict_at = COALESCE(verdict_at, $3) WHERE id = $1"
    };
}
macro_rules! its_ask {
    () => {
        "(SELECT ask FROM submissions WHERE id = $1)"
    };
}
const NOTE: Sql = &[note!(), select_asks!("WHERE a.id = ", its_ask!())];
/// With the ending from `$4` on.
const NOTE_AND_SETTLE: Sql = &[
    note!(),
    settle!(its_ask!(), "$4", "$5", "$6", "$7", "$8", "$9", "$10", "$11", "$12"),
    select_asks!("WHERE a.id = ", its_ask!()),
];
const FIND: &str = "SELECT id, ask, token, fingerprint, rejected, verdict FROM submissions WHERE id = $1";
const UNRESOLVED: &str = "SELECT id, ask, token, fingerprint, rejected, verdict FROM submissions \
    WHERE instance = $1 AND verdict IS NULL LIMIT $2";
const SEEN: &str = "INSERT INTO seen (ask, token, by_name, surface, seen_at, boot_seen) \
    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (ask, token) DO NOTHING";
const PAINTED: &str = "SELECT surface, boot_seen FROM seen WHERE ask = $1 AND token = $2";

/// The statement that inserts one submission; it yields the state of its ask.
macro_rules! insert {
    ($statements:expr, $now:expr, $new:expr) => {{
        let new: &NewSubmission = $new;
        Statement::new($statements)
            .bind(&new.id)
            .bind(&new.ask)
            .bind(&new.token)
            .bind(&new.by)
            .bind(new.provenance.as_str())
            .bind(rows::text("submissions", &new.answers)?)
            .bind(new.rejected)
            .bind(&new.reject_reason)
            .bind(&new.fingerprint)
            .bind($now.wall_millis())
    }};
}

/// Whether the ask of a submission had not ended.
fn is_open(state: Option<(String,)>) -> Result<bool, Failure> {
    state.map(|(state,)| state != "settled").ok_or_else(|| Failure::row("asks", "a row vanished"))
}

rows::row! {
    SubmissionRow {
        id: String,
        ask: String,
        token: String,
        fingerprint: String,
        rejected: bool,
        verdict: Option<String>,
    }
}

impl TryFrom<SubmissionRow> for StoredSubmission {
    type Error = Failure;

    fn try_from(row: SubmissionRow) -> Result<Self, Failure> {
        let SubmissionRow { id, ask, token, fingerprint, rejected, verdict } = row;
        let verdict = verdict
            .map(|word| {
                Verdict::ALL
                    .into_iter()
                    .find(|verdict| verdict.word() == word)
                    .ok_or_else(|| Failure::row("submissions", format!("'{word}' is no verdict")))
            })
            .transpose()?;
        Ok(Self { id, ask, token, fingerprint, rejected, verdict })
    }
}

impl Store {
    /// Commits submissions, all or none; only then may they be forwarded. Until their verdict is in, their asks are
    /// `sent`. Returns for each whether its ask had not ended.
    ///
    /// # Errors
    /// When the database fails; then none is kept.
    pub async fn submit(&self, now: Now, submissions: &[NewSubmission]) -> Result<Vec<bool>, StoreError> {
        on!(self, db => {
            if let [new] = submissions {
                return Ok(vec![is_open(db.write(insert!(INSERT, now, new).ahead()).await?.row(0)?)?]);
            }
            let mut tx = db.begin().await?;
            let mut open = Vec::with_capacity(submissions.len());
            for new in submissions {
                open.push(is_open(tx.run(insert!(INSERT, now, new)).await?.row(0)?)?);
            }
            tx.commit().await?;
            Ok(open)
        })
    }

    /// Notes the verdict on a submission, and with `ending` settles its ask unless it had ended. `None`: no such
    /// submission.
    ///
    /// # Errors
    /// When the database fails; then the submission is still unresolved.
    pub async fn reply(
        &self,
        now: Now,
        submission: &str,
        verdict: Verdict,
        ending: Option<&Ending>,
    ) -> Result<Option<Replied>, StoreError> {
        on!(self, db => {
            let statements = if ending.is_some() { NOTE_AND_SETTLE } else { NOTE };
            let query = Statement::new(statements).bind(submission).bind(verdict.word()).bind(now.wall_millis());
            let (query, ask) = match ending {
                Some(ending) => (bind_ending!(query, ending), 2),
                None => (query, 1),
            };
            let mut outcome = db.write(query).await?;
            if outcome.changed(0) == 0 {
                return Ok(None);
            }
            let settled_now = ending.is_some() && outcome.changed(1) == 1;
            let after: AskRow =
                outcome.row(ask)?.ok_or_else(|| Failure::row("asks", "a row vanished"))?;
            let OwnedAsk { ask, instance } = after.try_into()?;
            Ok(Some(Replied { ask, instance, settled_now }))
        })
    }

    /// The holder's word that an ask ended, with the submission that won. `owner` must own it.
    ///
    /// The submission's verdict is noted too, so that a settlement that overtook its response leaves nothing open.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn settle_by(
        &self,
        now: Now,
        ask: &str,
        owner: &str,
        ending: &Ending,
    ) -> Result<Settled, StoreError> {
        let Some((known, instance)) = self.ask(ask).await? else { return Ok(Settled::Unknown) };
        if instance != owner {
            return Ok(Settled::NotOwner);
        }
        // Most often its response came before, and noted everything.
        if known.settlement.as_ref().is_some_and(|how| how.submission_id == ending.submission_id) {
            return Ok(Settled::Already(Box::new(known)));
        }
        if let Some(winner) = &ending.submission_id {
            let known = self.submission(winner).await?;
            // A word that contradicts the submission is no verdict on it.
            let open = known.is_some_and(|known| {
                known.ask == ask && known.verdict.is_none() && ending.asks_for() == Some(known.rejected)
            });
            if open {
                return Ok(match self.reply(now, winner, Verdict::Delivered, Some(ending)).await? {
                    Some(Replied { ask, settled_now: true, .. }) => Settled::Now(Box::new(ask)),
                    Some(Replied { ask, .. }) => Settled::Already(Box::new(ask)),
                    None => Settled::Unknown,
                });
            }
        }
        self.settle(ask, Some(owner), ending).await
    }

    /// One submission.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn submission(&self, id: &str) -> Result<Option<StoredSubmission>, StoreError> {
        on!(self, db => {
            let row: Option<SubmissionRow> =
                sqlx::query_as(FIND).bind(id).fetch_optional(&mut *db.reader().await?).await?;
            row.map(TryInto::try_into).transpose()
        })
    }

    /// An instance's submissions without a verdict: what to ask it about when it comes back.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn unresolved(&self, instance: &str, limit: u32) -> Result<Vec<StoredSubmission>, StoreError> {
        on!(self, db => {
            let rows: Vec<SubmissionRow> = sqlx::query_as(UNRESOLVED)
                .bind(instance)
                .bind(i64::from(limit))
                .fetch_all(&mut *db.reader().await?)
                .await?;
            rows.into_iter().map(TryInto::try_into).collect()
        })
    }

    /// Notes that a session painted an ask; the first time counts. Returns whether this was it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn seen(
        &self,
        now: Now,
        ask: &str,
        token: &str,
        by: &str,
        surface: &str,
    ) -> Result<bool, StoreError> {
        on!(self, db => {
            let noting = Statement::new(&[SEEN])
                .bind(ask)
                .bind(token)
                .bind(by)
                .bind(surface)
                .bind(now.wall_millis())
                .bind(now.boot_millis());
            Ok(db.write(noting).await?.changed(0) == 1)
        })
    }

    /// When a session painted an ask, if it did.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn painted(&self, ask: &str, token: &str) -> Result<Option<Painted>, StoreError> {
        on!(self, db => {
            let row: Option<(String, i64)> =
                sqlx::query_as(PAINTED).bind(ask).bind(token).fetch_optional(&mut *db.reader().await?).await?;
            Ok(row.map(|(surface, boot_millis)| Painted { surface, boot_millis }))
        })
    }
}

impl NewSubmission {
    /// The ending that it makes when it is delivered; who and provenance come from its row.
    pub fn delivered(&self, at: Timestamp) -> Ending {
        delivered(&self.id, self.rejected, at)
    }
}

impl Ending {
    /// The ending that a delivered submission makes; who and provenance come from its row.
    pub fn delivered(submission: &StoredSubmission, at: Timestamp) -> Self {
        delivered(&submission.id, submission.rejected, at)
    }
}

fn delivered(submission: &str, rejected: bool, at: Timestamp) -> Ending {
    let (outcome, wire) = if rejected {
        (Outcome::Decline, WireAction::Decline)
    } else {
        (Outcome::Accept, WireAction::Accept)
    };
    Ending {
        outcome,
        provenance: Provenance::Client,
        rail: Rail::Inbox,
        wire: Some(wire),
        by: None,
        at,
        reason: None,
        submission_id: Some(submission.to_owned()),
    }
}
