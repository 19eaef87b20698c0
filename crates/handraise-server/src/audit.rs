//! What is refused because of who says it is counted, logged, and kept in a row (S9, S16).

use handraise_store::Refusal;

use crate::{access::Grant, inbox::Inbox, metrics::Refused};

/// Longest id that is kept of what was refused, in bytes (S39).
const LONGEST: usize = 64;

impl Inbox {
    /// Something of this token's was refused: by a holder, where there is one, and about something, where it named it.
    pub(crate) async fn audit(
        &self,
        what: Refused,
        grant: &Grant,
        instance: Option<&str>,
        about: Option<&str>,
    ) {
        self.metrics.refused(what);
        let about = about.map(|about| about.get(..about.floor_char_boundary(LONGEST)).unwrap_or_default());
        tracing::warn!(
            holder.token = grant.token.name,
            holder.instance = instance,
            about,
            "refused: {}",
            what.words()
        );
        let (token, token_name) = (&*grant.token.id, &*grant.token.name);
        let refusal = Refusal { what: what.word(), token, token_name, instance, about };
        // It is refused whether that can be kept or not.
        if let Err(error) = self.store.refused(self.now(), &refusal).await {
            tracing::error!(%error, "a refusal could not be kept");
        }
    }
}
