//! Whether the database takes anything at all: what an inbox that can be read but not written is known by.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Fault, Store, StoreError, on, statement::Statement};

/// Writes a value of no importance.
const PROBE: Statement = Statement::new(&["INSERT INTO meta (key, value) VALUES ('probe', '1') \
    ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1"]);

/// The last failure that keeps everybody from writing, until something was written again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trouble(Arc<Mutex<Option<Fault>>>);

impl Trouble {
    pub(crate) fn note(&self, error: &StoreError) {
        if let StoreError::Database {
            fault:
                fault @ (Fault::Full
                | Fault::Denied
                | Fault::Disk
                | Fault::Damaged
                | Fault::Locked
                | Fault::Closed),
            ..
        } = error
        {
            *self.fault() = Some(*fault);
        }
    }

    fn fault(&self) -> MutexGuard<'_, Option<Fault>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// What keeps the database from taking anything, if an operation has failed of it and [`probe`](Self::probe) has not
    /// succeeded since.
    pub fn trouble(&self) -> Option<Fault> {
        match self {
            Self::Sqlite(db) => *db.trouble.fault(),
        }
    }

    /// Writes something of no importance; when that succeeds, what was in the way is over. Damage is not: what is damaged
    /// may be elsewhere.
    ///
    /// # Errors
    /// When the database takes nothing.
    pub async fn probe(&self) -> Result<(), StoreError> {
        on!(self, db => {
            db.write(PROBE).await?;
            db.trouble.fault().take_if(|fault| *fault != Fault::Damaged);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use handraise_api::session::{Author, Message, MessageKind};
    use handraise_core::Moment;
    use jiff::Timestamp;

    use super::*;
    use crate::{NewSession, Now, statement::Sql};

    /// Lets the database have so many pages, or as many as it has.
    async fn limit(store: &Store, pragma: Sql) {
        let Store::Sqlite(db) = store;
        let mut tx = db.begin().await.unwrap();
        tx.run(Statement::new(pragma)).await.unwrap();
        tx.commit().await.unwrap();
    }

    #[tokio::test]
    async fn a_database_that_takes_nothing_is_known_until_it_takes_something() {
        let dir = tempfile::tempdir().unwrap();
        let now = Now { wall: Timestamp::UNIX_EPOCH, boot: Moment::from_millis(0) };
        let (store, _) = Store::open(dir.path(), "boot", now).await.unwrap();
        let new = NewSession { id: "s", agent: "a", cwd: None, holder_token: "local" };
        store.add_session(now, new).await.unwrap();
        let large = Message {
            seq: 0,
            session_id: "s".into(),
            at: now.wall,
            kind: MessageKind::Notice,
            author: Author::System,
            text: "x".repeat(1_000_000),
            continues: false,
            requests_input: false,
            metadata: serde_json::Map::new(),
        };
        assert_eq!(store.trouble(), None);
        limit(&store, &["PRAGMA max_page_count = 1"]).await;
        let error = store.note(now, large.clone()).await.unwrap_err();
        assert!(
            error.to_string().contains("handraise.db") && error.to_string().contains("disk is full"),
            "{error}"
        );
        store.ping().await.unwrap();
        assert_eq!(store.trouble(), Some(Fault::Full), "reading is no sign");
        limit(&store, &["PRAGMA max_page_count = 1000000"]).await;
        store.probe().await.unwrap();
        assert_eq!(store.trouble(), None);
        assert_eq!(store.note(now, large).await.unwrap().map(|entry| entry.seq), Some(1));
    }

    #[tokio::test]
    async fn a_database_that_is_closed_is_known_for_good() {
        let dir = tempfile::tempdir().unwrap();
        let now = Now { wall: Timestamp::UNIX_EPOCH, boot: Moment::from_millis(0) };
        let (store, _) = Store::open(dir.path(), "boot", now).await.unwrap();
        store.close().await;
        let error = store.probe().await.unwrap_err();
        assert!(error.to_string().contains("start it again"), "{error}");
        assert_eq!(store.trouble(), Some(Fault::Closed));
        store.probe().await.unwrap_err();
        assert_eq!(store.trouble(), Some(Fault::Closed));
    }
}
