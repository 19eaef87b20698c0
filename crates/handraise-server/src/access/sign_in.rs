//! Signing a page in: with the one-time link, or with a token (S11).

use std::{collections::HashMap, sync::Arc, time::Duration};

use handraise_api::access::Scope;
use handraise_transport::ids::{self, RandomError};
use jiff::{SignedDuration, Timestamp};
use subtle::ConstantTimeEq as _;

use super::{Access, Grant, Hash, hash, lock, name};
use crate::{failure::Failure, peer::Peer};

/// Failed sign-ins of one peer within [`ATTEMPT_WINDOW`] that are told apart from too many.
const ATTEMPTS: u32 = 10;
const ATTEMPT_WINDOW: Duration = Duration::from_secs(60);
/// Peers whose attempts are counted at a time.
const PEERS: usize = 1_024;
/// Pages that may be signed in with one token. A reader's token must not be able to take every place (S37).
const MOST_PAGES: usize = 64;

#[derive(Debug)]
pub(super) struct SignIn {
    hash: Hash,
    until_boot_millis: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Attempts {
    failed: u32,
    since_boot_millis: u64,
}

impl Access {
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
}

fn within(now: u64, since: u64) -> bool {
    Duration::from_millis(now.saturating_sub(since)) < ATTEMPT_WINDOW
}
