//! Tokens and checks on a database whose inbox does not run.

use std::path::{Path, PathBuf};

use handraise_api::access::TokenList;
use handraise_store::{DATABASE_FILE, Store};

/// Every token, the newest first.
pub(crate) async fn tokens(data_dir: &Path) -> anyhow::Result<TokenList> {
    let stored = with_store(data_dir, async |store| Ok(store.tokens().await?)).await?;
    Ok(TokenList { tokens: stored.into_iter().map(|stored| stored.token).collect() })
}

/// Revokes a token; `false` when there is none.
pub(crate) async fn revoke_token(data_dir: &Path, id: &str) -> anyhow::Result<bool> {
    with_store(data_dir, async |store| Ok(store.delete_token(id).await?)).await
}

/// Whether the database opens and answers; `None` when there is none yet.
pub(crate) async fn check(data_dir: &Path) -> anyhow::Result<Option<PathBuf>> {
    let path = data_dir.join(DATABASE_FILE);
    if !path.exists() {
        return Ok(None);
    }
    with_store(data_dir, async |store| Ok(store.ping().await?)).await?;
    Ok(Some(path))
}

/// Opens the database, has something done with it, and closes it again whatever came of it.
async fn with_store<T>(
    data_dir: &Path,
    work: impl AsyncFnOnce(&Store) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let store = Store::open_aside(data_dir).await?;
    let outcome = work(&store).await;
    store.close().await;
    outcome
}
