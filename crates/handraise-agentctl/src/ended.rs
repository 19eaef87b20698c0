//! How an agent's run ended well.

/// The end of a run that is no error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The last turn ended, and there was nothing more to do.
    Turn {
        /// ACP's word for why.
        stop_reason: String,
    },
    /// We were told to stop, or ran out of prompts, and no turn was under way.
    Stopped,
    /// The agent left by itself, in order, while nothing was expected of it.
    Left,
    /// The agent had nothing to do for the idle timeout.
    Idle,
}

impl Ended {
    /// The stop reason of the last turn, where a turn was what was waited for.
    pub fn stop_reason(&self) -> Option<&str> {
        match self {
            Self::Turn { stop_reason } => Some(stop_reason),
            Self::Stopped | Self::Left | Self::Idle => None,
        }
    }

    /// The exit status of `handraise agent` (product.md): 0 for `end_turn` and for a run without a turn, 4 for
    /// `cancelled`, 6 for any other stop reason. Errors are 1.
    pub fn exit_code(&self) -> u8 {
        match self.stop_reason() {
            None | Some("end_turn") => 0,
            Some("cancelled") => 4,
            Some(_) => 6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_the_product() {
        let turn = |stop_reason: &str| Ended::Turn { stop_reason: stop_reason.to_owned() }.exit_code();
        assert_eq!([turn("end_turn"), turn("cancelled"), turn("max_tokens"), turn("refusal")], [0, 4, 6, 6]);
        assert_eq!([Ended::Stopped, Ended::Left, Ended::Idle].map(|ended| ended.exit_code()), [0, 0, 0]);
    }
}
