//! Who may do what: tokens, page sessions, and their ends (S1, S34).

mod secret;
mod sign_in;

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::Duration,
};

use handraise_api::access::{CreateToken, Scope, Token};
use handraise_store::{NewToken, Store, StoredToken};
use handraise_transport::{
    clock::SharedClock,
    escape::is_hazardous,
    ids::{self, RandomError},
};
use jiff::Timestamp;
use subtle::ConstantTimeEq as _;
use tokio_util::sync::CancellationToken;

pub(crate) use self::secret::{Hash, hash, hex};
use self::{
    secret::unhex,
    sign_in::{Attempts, SignIn},
};
use crate::failure::Failure;

/// Page sessions and tokens that may exist (S37).
const MOST_TOKENS: usize = 4_096;
/// Longest name, in bytes (S39).
const LONGEST_NAME: usize = 128;

/// A token that is good now, shared by everything that runs in its name.
#[derive(Debug)]
pub(crate) struct Grant {
    pub(crate) token: Token,
    pub(crate) hash: Hash,
    parent: Option<String>,
    /// Cancelled when it is revoked, expires or signs out; streams end then (S34).
    pub(crate) ended: CancellationToken,
}

impl Grant {
    pub(crate) fn new(stored: StoredToken) -> Option<Self> {
        let hash = unhex(&stored.hash)?;
        Some(Self { token: stored.token, hash, parent: stored.parent, ended: CancellationToken::new() })
    }
}

/// The tokens of an inbox.
#[derive(Debug)]
pub(crate) struct Access {
    store: Store,
    clock: SharedClock,
    page_session: Duration,
    grants: RwLock<HashMap<Hash, Arc<Grant>>>,
    sign_in: Mutex<Option<SignIn>>,
    attempts: Mutex<HashMap<Option<IpAddr>, Attempts>>,
}

impl Access {
    pub(crate) async fn load(
        store: Store,
        clock: SharedClock,
        page_session: Duration,
    ) -> Result<Self, handraise_store::StoreError> {
        let grants = store
            .tokens()
            .await?
            .into_iter()
            .filter_map(Grant::new)
            .map(|grant| (grant.hash, Arc::new(grant)))
            .collect();
        Ok(Self {
            store,
            clock,
            page_session,
            grants: RwLock::new(grants),
            sign_in: Mutex::default(),
            attempts: Mutex::default(),
        })
    }

    /// The grant of a bearer token, if it is one and still good.
    pub(crate) fn authenticate(&self, secret: &str) -> Option<Arc<Grant>> {
        let hash = hash(secret);
        let grant = self.read().get(&hash).cloned()?;
        // The map compared hashes of a secret that nobody can steer; this one takes the same time for all.
        let same = bool::from(grant.hash.ct_eq(&hash));
        (same && self.is_good(&grant)).then_some(grant)
    }

    /// Whether a grant is still good: for calls that took a while between their token and what they do (S34).
    pub(crate) fn is_good(&self, grant: &Grant) -> bool {
        !grant.ended.is_cancelled() && grant.token.expires_at.is_none_or(|at| self.clock.wall() < at)
    }

    /// The holder tokens whose hash begins with these four bytes (S43).
    pub(crate) fn holder_keys(&self, prefix: [u8; 4]) -> Vec<Hash> {
        let now = self.clock.wall();
        self.read()
            .values()
            .filter(|grant| grant.token.scope == Scope::Holder)
            .filter(|grant| grant.token.expires_at.is_none_or(|at| now < at))
            .filter(|grant| grant.hash.starts_with(&prefix))
            .map(|grant| grant.hash)
            .collect()
    }

    /// Every token that is good, the newest first.
    pub(crate) fn tokens(&self) -> Vec<Token> {
        let now = self.clock.wall();
        let mut tokens: Vec<Token> = self
            .read()
            .values()
            .map(|grant| grant.token.clone())
            .filter(|token| token.expires_at.is_none_or(|at| now < at))
            .collect();
        tokens.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        tokens
    }

    /// Makes a token; returns its id and its secret, which is nowhere kept.
    pub(crate) async fn create(&self, wanted: &CreateToken) -> Result<(String, String), Failure> {
        let name = wanted.name.as_deref().map(|wanted| name("name", wanted)).transpose()?;
        let owner = wanted.owner.as_deref().map(|wanted| self::name("owner", wanted)).transpose()?;
        if wanted.expires.is_some_and(|at| at <= self.clock.wall()) {
            return Err(Failure::bad_request("'expires' has passed; give a time in the future"));
        }
        let name = name.unwrap_or_else(|| wanted.scope.as_str().to_owned());
        let (id, secret, _) = self.add(name, wanted.scope, owner, wanted.expires, None, false).await?;
        Ok((id, secret))
    }

    async fn add(
        &self,
        name: String,
        scope: Scope,
        owner: Option<String>,
        expires_at: Option<Timestamp>,
        parent: Option<String>,
        page_session: bool,
    ) -> Result<(String, String, Arc<Grant>), Failure> {
        if self.read().len() >= MOST_TOKENS {
            let message = format!("there are {MOST_TOKENS} tokens and sign-ins already; revoke some");
            return Err(Failure::full(message, self.next_end(self.read().values())));
        }
        let secret = ids::secret().map_err(|error| no_random(&error))?;
        let token = Token {
            id: ids::mint(),
            name,
            scope,
            owner,
            created_at: self.clock.wall(),
            expires_at,
            page_session,
        };
        let hash = hash(&secret);
        self.store
            .add_token(&NewToken { token: token.clone(), hash: hex(&hash), parent: parent.clone() })
            .await?;
        let id = token.id.clone();
        let grant = Arc::new(Grant { token, hash, parent, ended: CancellationToken::new() });
        self.write().insert(hash, Arc::clone(&grant));
        Ok((id, secret, grant))
    }

    /// Ends a token and the page sessions made with it. Returns whether there was one.
    pub(crate) async fn revoke(&self, id: &str) -> Result<bool, Failure> {
        let existed = self.store.delete_token(id).await?;
        let mut grants = self.write();
        // A page may have signed another one in: all that came from this token ends with it.
        let mut ending = vec![id.to_owned()];
        while let Some(id) = ending.pop() {
            grants.retain(|_, grant| {
                if grant.token.id != id && grant.parent.as_deref() != Some(&*id) {
                    return true;
                }
                grant.ended.cancel();
                if grant.token.id != id {
                    ending.push(grant.token.id.clone());
                }
                false
            });
        }
        Ok(existed)
    }

    /// Ends what has expired. Called at least once a second.
    pub(crate) fn expire(&self) {
        let now = self.clock.wall();
        let expired = |grant: &Grant| grant.token.expires_at.is_some_and(|at| at <= now);
        if !self.read().values().any(|grant| expired(grant)) {
            return;
        }
        self.write().retain(|_, grant| {
            if expired(grant) {
                grant.ended.cancel();
            }
            !expired(grant)
        });
    }

    /// How long until the first of these ends by itself.
    fn next_end<'a>(&self, grants: impl Iterator<Item = &'a Arc<Grant>>) -> Option<Duration> {
        let now = self.clock.wall();
        let first = grants.filter_map(|grant| grant.token.expires_at).min()?;
        Some(Duration::try_from(first.duration_since(now)).unwrap_or_default())
    }

    /// The id of the token from which a grant comes, by however many sign-ins; its own when it comes from none.
    pub(crate) fn origin(&self, grant: &Grant) -> String {
        let grants = self.read();
        let mut at = (&grant.token.id, grant.parent.as_ref());
        while let (_, Some(parent)) = at {
            let above = grants.values().find(|known| known.token.id == *parent);
            match above {
                Some(above) => at = (&above.token.id, above.parent.as_ref()),
                None => break,
            }
        }
        at.0.clone()
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, HashMap<Hash, Arc<Grant>>> {
        self.grants.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<Hash, Arc<Grant>>> {
        self.grants.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn no_random(error: &RandomError) -> Failure {
    Failure::internal("no secret could be made", error)
}

/// A name that may be stored and shown (S26, S39).
fn name(field: &str, wanted: &str) -> Result<String, Failure> {
    let name = wanted.trim();
    if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(is_hazardous) {
        let message =
            format!("'{field}' takes 1 to {LONGEST_NAME} bytes that are no control or bidi characters");
        return Err(Failure::bad_request(message));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s39_names_are_short_and_printable() {
        assert_eq!(name("name", "  Ada ").unwrap(), "Ada");
        for bad in ["", " ", "a\u{7}b", "a\u{202e}b", "a\u{feff}b", &"x".repeat(129)] {
            assert!(name("name", bad).is_err(), "{bad:?}");
        }
    }
}
