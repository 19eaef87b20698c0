//! What the inbox itself writes into a transcript: about agents that it starts, which may fail before a holder is there.

use handraise_api::session::Message;

use crate::{
    Now, Store, StoreError, on, rows,
    statement::{Sql, Statement},
};

/// Numbers the entry and puts it in. Transcripts are cut when a holder's next entry comes; these are few.
const NOTE: Sql = &[
    "UPDATE sessions SET last_seq = last_seq + 1, bytes = bytes + $2, updated_at = $3 WHERE id = $1 \
     RETURNING last_seq",
    "INSERT INTO messages (session_id, seq, bytes, body) \
     SELECT id, last_seq, $2, $4 FROM sessions WHERE id = $1 AND changes() = 1",
];

impl Store {
    /// Appends an entry of the inbox's own to a transcript, whoever has the session. Returns it with its number, or
    /// `None` when there is no such session.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn note(&self, now: Now, entry: Message) -> Result<Option<Message>, StoreError> {
        on!(self, db => {
            let body = rows::text("messages", &entry)?;
            let noting = Statement::new(NOTE)
                .bind(&entry.session_id)
                .bind(i64::try_from(body.len()).unwrap_or(i64::MAX))
                .bind(now.wall_millis())
                .bind(body);
            let numbered = db.write(noting).await?.row::<(i64,)>(0)?;
            Ok(numbered.map(|(seq,)| Message { seq: u64::try_from(seq).unwrap_or(0), ..entry }))
        })
    }
}
