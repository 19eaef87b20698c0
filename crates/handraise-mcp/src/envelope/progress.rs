//! Progress never falls back, also when a call runs again under the client's own token.

use crate::frame::{ById, Id, member_named, reply};

/// Tokens whose progress is watched. More calls than that lose the guarantee, not their progress.
const MAX_TOKENS: usize = 1024;

/// The longest token that is watched, in bytes.
const LONGEST_TOKEN: usize = 256;

/// How much progress it is to have waited once more.
const BEAT: f64 = 0.001;

/// Whether the progress of a token is watched, so that what is said of it is above what was said before.
pub(super) fn is_watched(token: &Id<'_>) -> bool {
    token.raw().len() <= LONGEST_TOKEN
}

/// The last progress that was forwarded, by token.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Of calls that run for the first time.
    last: ById<f64>,
    /// Of calls that wait or run again: what is not above it is dropped.
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
        let Some(token) = token else { return };
        if !self.last.is_empty() {
            self.last.remove(token);
        }
        if !self.floors.is_empty() {
            self.floors.remove(token);
        }
    }

    /// A call has ended for the first time and waits for somebody: what it is told from now on is ours.
    pub(super) fn waits(&mut self, token: Option<Id<'_>>) {
        if let Some(token) = token.filter(is_watched)
            && self.floors.get_mut(token).is_none()
        {
            let floor = self.last.remove(token).unwrap_or_default();
            self.floors.insert(token, floor);
        }
    }

    /// A call waits no more, and has not run: what it was told of last.
    pub(super) fn rests(&mut self, token: Option<Id<'_>>) -> Option<f64> {
        self.floors.remove(token?)
    }

    /// A call runs whose client was told of progress before.
    pub(super) fn goes_on_above(&mut self, token: Option<Id<'_>>, told: f64) {
        if let Some(token) = token.filter(is_watched) {
            self.floors.insert(token, told);
        }
    }

    /// Progress of a call that waits: a little above what was said last, so that the server's own goes on above it.
    pub(super) fn beat(&mut self, token: Id<'_>) -> Option<Vec<u8>> {
        let floor = self.floors.get_mut(token)?;
        *floor = (*floor + BEAT).max(floor.next_up());
        let params = format!(
            "{{\"progressToken\":{},\"progress\":{},\"message\":\"waiting for an answer in the inbox\"}}",
            token.raw(),
            serde_json::Value::from(*floor)
        );
        Some(reply::notification("notifications/progress", &params))
    }

    /// A call runs again.
    pub(super) fn runs_again(&mut self, token: Option<Id<'_>>) {
        if let Some(token) = token.filter(is_watched) {
            let said = self.floors.get_mut(token).map(|floor| *floor);
            let floor = said.or_else(|| self.last.remove(token)).unwrap_or(f64::NEG_INFINITY);
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
    fn who_waits_is_told_of_progress_above_the_servers_and_below_what_comes_next() {
        let mut progress = Progress::default();
        let token = Id::parse("\"t\"").unwrap();
        assert_eq!(progress.beat(token), None, "it does not wait");
        assert!(progress.passes(&params("\"t\"", "40")));
        progress.waits(Some(token));
        for (floor, more) in [(40.0, 0.002), (40.001, 0.002)] {
            let frame = String::from_utf8(progress.beat(token).unwrap()).unwrap();
            let frame: serde_json::Value = serde_json::from_str(&frame).unwrap();
            assert_eq!(
                (&frame["method"], &frame["params"]["progressToken"]),
                (&"notifications/progress".into(), &"t".into())
            );
            let said = frame["params"]["progress"].as_f64().unwrap();
            assert!(said > floor && said < floor + more, "{said}");
        }
        progress.waits(Some(token));
        progress.runs_again(Some(token));
        assert!(!progress.passes(&params("\"t\"", "40")) && progress.passes(&params("\"t\"", "41")));
        progress.forget(Some(token));
        assert!(progress.passes(&params("\"t\"", "1")) && progress.floors.is_empty());
        for huge in ["1e300", "-1e300"] {
            let mut progress = Progress::default();
            assert!(progress.passes(&params("\"t\"", huge)));
            progress.waits(Some(token));
            let frame = String::from_utf8(progress.beat(token).unwrap()).unwrap();
            let frame: serde_json::Value = serde_json::from_str(&frame).unwrap();
            assert!(frame["params"]["progress"].as_f64().unwrap() > huge.parse::<f64>().unwrap());
        }
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
