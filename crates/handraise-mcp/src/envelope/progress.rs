//! Progress never falls back, also when a call runs again under the client's own token.

use crate::frame::{ById, Id, member_named};

/// Tokens whose progress is watched. More calls than that lose the guarantee, not their progress.
const MAX_TOKENS: usize = 1024;

/// The longest token that is watched, in bytes.
const LONGEST_TOKEN: usize = 256;

fn is_watched(token: &Id<'_>) -> bool {
    token.raw().len() <= LONGEST_TOKEN
}

/// The last progress that was forwarded, by token.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Of calls that run for the first time.
    last: ById<f64>,
    /// Of calls that run again: what is not above it is dropped.
    floors: ById<f64>,
}

impl Progress {
    /// Whether the params of `notifications/progress` go on to the client.
    pub(super) fn passes(&mut self, params: &str) -> bool {
        let token = member_named(params, "progressToken").and_then(Id::parse).filter(is_watched);
        let value = member_named(params, "progress").and_then(|value| value.parse::<f64>().ok());
        let (Some(token), Some(value)) = (token, value) else { return true };
        if let Some(floor) = self.floors.get_mut(token) {
            let is_progress = value > *floor;
            if is_progress {
                *floor = value;
            }
            return is_progress;
        }
        if let Some(last) = self.last.get_mut(token) {
            *last = last.max(value);
        } else if self.last.len() < MAX_TOKENS {
            self.last.insert(token, value);
        }
        true
    }

    /// A call has ended for the first time, and does not run again.
    pub(super) fn forget(&mut self, token: Option<Id<'_>>) {
        if let Some(token) = token.filter(|_| !self.last.is_empty()) {
            self.last.remove(token);
        }
    }

    /// A call runs again.
    pub(super) fn runs_again(&mut self, token: Option<Id<'_>>) {
        if let Some(token) = token.filter(is_watched) {
            let floor = self.last.remove(token).unwrap_or(f64::NEG_INFINITY);
            self.floors.insert(token, floor);
        }
    }

    /// The second run has ended.
    pub(super) fn ran_again(&mut self, token: Option<Id<'_>>) {
        if let Some(token) = token {
            self.floors.remove(token);
        }
    }

    /// No request is open, so no token means anything.
    pub(super) fn clear(&mut self) {
        if !self.last.is_empty() || !self.floors.is_empty() {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(token: &str, progress: &str) -> String {
        format!(r#"{{"progressToken":{token},"progress":{progress}}}"#)
    }

    #[test]
    fn the_second_run_starts_above_the_first() {
        let mut progress = Progress::default();
        let token = Id::parse("1");
        assert!(progress.passes(&params("1", "10")));
        assert!(progress.passes(&params("1", "40.5")));
        progress.runs_again(token);
        for (value, passes) in [("10", false), ("40.5", false), ("41", true), ("41", false), ("1e2", true)] {
            assert_eq!(progress.passes(&params("1", value)), passes, "{value}");
        }
        assert!(progress.passes(&params("\"1\"", "1")), "another token");
        progress.ran_again(token);
        assert!(progress.passes(&params("1", "1")), "the token is used for another call");
    }

    #[test]
    fn a_first_run_and_what_is_no_progress_pass_untouched() {
        let mut progress = Progress::default();
        assert!(progress.passes(&params("1", "10")) && progress.passes(&params("1", "5")));
        for params in ["", "{}", "[]", r#"{"progressToken":1}"#, r#"{"progressToken":null,"progress":1}"#] {
            assert!(progress.passes(params), "{params}");
        }
    }

    #[test]
    fn tokens_are_bounded() {
        let mut progress = Progress::default();
        for number in 0..2 * MAX_TOKENS {
            assert!(progress.passes(&params(&number.to_string(), "1")));
        }
        assert_eq!(progress.last.len(), MAX_TOKENS);
        let long = format!("\"{}\"", "x".repeat(LONGEST_TOKEN));
        progress.runs_again(Id::parse(&long));
        assert!(progress.passes(&params(&long, "2")) && progress.passes(&params(&long, "1")));
        progress.forget(Id::parse("0"));
        assert_eq!(progress.last.len(), MAX_TOKENS - 1);
        progress.clear();
        assert!(progress.last.is_empty());
    }
}
