//! Who may do what: tokens, page sessions, the sign-in link, and their ends (S1, S11, S34).

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
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio_util::sync::CancellationToken;

use crate::{failure::Failure, peer::Peer};

/// SHA-256 of a secret: what is kept of it (S34).
pub(crate) type Hash = [u8; 32];

/// Failed sign-ins of one peer within [`ATTEMPT_WINDOW`] that are told apart from too many.
const ATTEMPTS: u32 = 10;
const ATTEMPT_WINDOW: Duration = Duration::from_secs(60);
/// Peers whose attempts are counted at a time.
const PEERS: usize = 1_024;
/// Page sessions and tokens that may exist (S37).
const MOST_TOKENS: usize = 4_096;
/// Pages that may be signed in with one token. A reader's token must not be able to take every place (S37).
const MOST_PAGES: usize = 64;
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

#[derive(Debug)]
struct SignIn {
    hash: Hash,
    until_boot_millis: u64,
}

#[derive(Debug, Clone, Copy)]
struct Attempts {
    failed: u32,
    since_boot_millis: u64,
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

    /// Makes the one-time secret of a sign-in link (S11). An earlier one is void.
    pub(crate) fn offer_sign_in(&self, good_for: Duration) -> Result<String, RandomError> {
        let secret = ids::secret()?;
        let good_for = u64::try_from(good_for.as_millis()).unwrap_or(u64::MAX);
        *lock(&self.sign_in) = Some(SignIn {
            hash: hash(&secret),
            until_boot_millis: self.clock.boot_millis().saturating_add(good_for),
        });
        Ok(secret)
    }

    /// Signs a page in: with the link's secret, once, or with a token, in its scope.
    ///
    /// Who has failed often is slowed down, and a good secret still gets in: secrets cannot be guessed, and whoever
    /// shares the address must not be able to lock the operator out.
    pub(crate) async fn sign_in(
        &self,
        peer: Peer,
        secret: &str,
        wanted: Option<&str>,
    ) -> Result<(String, Arc<Grant>), Failure> {
        let wanted =
            wanted.filter(|name| !name.trim().is_empty()).map(|wanted| name("name", wanted)).transpose()?;
        let (scope, parent, own_name, owner, until) = if self.take_sign_in(secret) {
            (Scope::Admin, None, "operator".to_owned(), None, None)
        } else if let Some(grant) = self.authenticate(secret) {
            if grant.token.scope == Scope::Holder {
                return Err(Failure::forbidden(
                    "this is a holder's token; sign in with one of scope viewer, operator or admin",
                ));
            }
            let token = &grant.token;
            let parent = Some(token.id.clone());
            (token.scope, parent, token.name.clone(), token.owner.clone(), token.expires_at)
        } else {
            if let Some(wait) = self.failed_too_often(peer) {
                return Err(Failure::slowed_down("too many failed sign-ins from there; wait a minute", wait));
            }
            return Err(Failure::unauthorized(
                "this sign-in link or token is not good (any more); links work once, for ten minutes",
            ));
        };
        let page_session = SignedDuration::try_from(self.page_session).unwrap_or(SignedDuration::MAX);
        let latest = self.clock.wall().saturating_add(page_session).unwrap_or(Timestamp::MAX);
        let until = until.map_or(latest, |until| until.min(latest));
        let name = wanted.unwrap_or(own_name);
        if let Some(parent) = &parent {
            self.make_place(parent).await?;
        }
        let (_, secret, grant) = self.add(name, scope, owner, Some(until), parent.clone(), true).await?;
        // The token may have been revoked between its check and now.
        if parent.is_some_and(|parent| !self.read().values().any(|known| known.token.id == parent)) {
            self.revoke(&grant.token.id).await?;
            return Err(Failure::unauthorized("this token is not good any more"));
        }
        Ok((secret, grant))
    }

    /// Signs the oldest page of a token out when it has as many as it may have. A page cannot push others out by
    /// signing in again and again.
    async fn make_place(&self, token: &str) -> Result<(), Failure> {
        let oldest = {
            let grants = self.read();
            let by_id: HashMap<&str, &Grant> =
                grants.values().map(|grant| (grant.token.id.as_str(), &**grant)).collect();
            let root = |id: &str| {
                let mut at = by_id.get(id).copied()?;
                while let Some(above) = at.parent.as_deref().and_then(|id| by_id.get(id)) {
                    at = *above;
                }
                Some(at.token.id.as_str())
            };
            let origin = root(token);
            let pages =
                || grants.values().filter(|page| page.parent.is_some() && root(&page.token.id) == origin);
            if pages().count() < MOST_PAGES {
                return Ok(());
            }
            if origin != Some(token) {
                let message =
                    format!("{MOST_PAGES} pages are signed in with this token already; sign one out");
                return Err(Failure::full(message, self.next_end(pages())));
            }
            pages()
                .filter(|page| page.parent.as_deref() == Some(token))
                .min_by_key(|page| (page.token.created_at, &page.token.id))
                .map(|page| page.token.id.clone())
        };
        if let Some(oldest) = oldest {
            self.revoke(&oldest).await?;
        }
        Ok(())
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

    /// Takes the sign-in secret out, if this is it and it is still good.
    fn take_sign_in(&self, secret: &str) -> bool {
        let mut sign_in = lock(&self.sign_in);
        let good = sign_in.as_ref().is_some_and(|offered| {
            bool::from(offered.hash.ct_eq(&hash(secret)))
                && self.clock.boot_millis() < offered.until_boot_millis
        });
        if good {
            *sign_in = None;
        }
        good
    }

    /// Counts a failure, and says how long to wait where there were too many of them.
    fn failed_too_often(&self, peer: Peer) -> Option<Duration> {
        let now = self.clock.boot_millis();
        let mut attempts = lock(&self.attempts);
        if attempts.len() >= PEERS {
            attempts.retain(|_, attempts| within(now, attempts.since_boot_millis));
        }
        if attempts.len() >= PEERS {
            attempts.clear();
        }
        let entry = attempts.entry(peer.address()).or_insert(Attempts { failed: 0, since_boot_millis: now });
        if !within(now, entry.since_boot_millis) {
            *entry = Attempts { failed: 0, since_boot_millis: now };
        }
        entry.failed = entry.failed.saturating_add(1);
        let since = Duration::from_millis(now.saturating_sub(entry.since_boot_millis));
        (entry.failed > ATTEMPTS).then(|| ATTEMPT_WINDOW.saturating_sub(since))
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, HashMap<Hash, Arc<Grant>>> {
        self.grants.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<Hash, Arc<Grant>>> {
        self.grants.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn within(now: u64, since: u64) -> bool {
    Duration::from_millis(now.saturating_sub(since)) < ATTEMPT_WINDOW
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

/// What is kept of a secret.
pub(crate) fn hash(secret: &str) -> Hash {
    Sha256::digest(secret.as_bytes()).into()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Hash> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_reads_back_from_its_hex() {
        let hash = hash("secret");
        assert_eq!(unhex(&hex(&hash)), Some(hash));
        assert_eq!(unhex("zz"), None);
        assert_eq!(unhex(&"g".repeat(64)), None);
    }

    #[test]
    fn s39_names_are_short_and_printable() {
        assert_eq!(name("name", "  Ada ").unwrap(), "Ada");
        for bad in ["", " ", "a\u{7}b", "a\u{202e}b", "a\u{feff}b", &"x".repeat(129)] {
            assert!(name("name", bad).is_err(), "{bad:?}");
        }
    }
}
