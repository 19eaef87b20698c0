//! The closed vocabularies as JSON strings.

use handraise_core::words as core;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Mirrors a vocabulary of the core, so that neither can gain a word without the other.
macro_rules! mirror {
    ($name:ident { $($variant:ident),+ $(,)? }) => {
        #[doc = concat!("See [`handraise_core::words::", stringify!($name), "`].")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            $(
                #[doc = concat!("[`handraise_core::words::", stringify!($name), "::", stringify!($variant), "`]")]
                $variant,
            )+
        }

        impl $name {
            /// The spelling used on every wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => core::$name::$variant.as_str(),)+ }
            }
        }

        impl From<core::$name> for $name {
            fn from(word: core::$name) -> Self {
                match word { $(core::$name::$variant => Self::$variant,)+ }
            }
        }

        impl From<$name> for core::$name {
            fn from(word: $name) -> Self {
                match word { $($name::$variant => Self::$variant,)+ }
            }
        }

        impl std::str::FromStr for $name {
            type Err = core::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                word.parse::<core::$name>().map(Self::from)
            }
        }
    };
}

mirror!(Source { Elicitation, Permission, Refusal, Confirm, Tool, Script });
mirror!(Mode { Form, Url });
mirror!(Kind { Single, Multi, Text, Boolean, Number, Integer });
mirror!(Companion { Replaces, Adds });
mirror!(Outcome {
    Accept,
    Decline,
    Cancel,
    Timeout,
    Invalid,
    Error,
    NotOffered,
    Disabled,
    Remembered,
    Asked,
    Withdrawn,
});
mirror!(Provenance { Human, Client, NotShown, System });
mirror!(Rail { Form, Url, Inbox, Token, Refuse });
mirror!(Era { Push, Mrtr, Task, Acp, Local });
mirror!(Declared { None, Bare, Form, Url, Both, Unknown });
mirror!(OnDeadline { Decline, Refuse });
mirror!(WireAction { Accept, Decline, Cancel });

/// What kind of process holds an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HolderKind {
    /// `handraise agent`.
    Agent,
    /// `handraise mcp`.
    Gateway,
    /// `handraise ask`.
    Ask,
    /// `handraise tool`.
    Tool,
    /// `handraise hook`.
    Hook,
}

/// Whose answer counts (S16): compares the owner of the holder's token with the owner of the token that answers. Where
/// either has none, nobody can be told apart, and no answer counts unless every operator's does.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Who {
    /// Every operator's.
    #[default]
    Operator,
    /// Only of the owner of the holder's token.
    Caller,
    /// Only of somebody else.
    NotTheCaller,
}

impl Who {
    /// The spelling on the wire, in the settings and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Caller => "caller",
            Self::NotTheCaller => "not-the-caller",
        }
    }

    /// Whether an answer counts that comes from `operator`'s token to an ask of `caller`'s.
    pub fn allows(self, caller: Option<&str>, operator: Option<&str>) -> bool {
        match self {
            Self::Operator => true,
            Self::Caller => caller.zip(operator).is_some_and(|(caller, operator)| caller == operator),
            Self::NotTheCaller => caller.zip(operator).is_some_and(|(caller, operator)| caller != operator),
        }
    }

    /// Whether it is everybody's, which is not said.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    pub(crate) fn is_everybody(&self) -> bool {
        *self == Self::Operator
    }
}

/// Where an ask is in its life, as the inbox knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AskState {
    /// Nobody's submission is on its way.
    Open,
    /// A submission went to the holder; its verdict is not in yet.
    Sent,
    /// It ended.
    Settled,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s16_an_owner_that_is_unknown_on_either_side_is_refused() {
        let (ada, bob) = (Some("ada"), Some("bob"));
        let allowed = |who: Who| {
            [(ada, ada), (ada, bob), (ada, None), (None, ada), (None, None)]
                .map(|(caller, operator)| who.allows(caller, operator))
        };
        assert_eq!(allowed(Who::Operator), [true; 5]);
        assert_eq!(allowed(Who::Caller), [true, false, false, false, false]);
        assert_eq!(allowed(Who::NotTheCaller), [false, true, false, false, false]);
        for who in [Who::Operator, Who::Caller, Who::NotTheCaller] {
            assert_eq!(serde_json::to_value(who).unwrap(), who.as_str());
        }
    }

    #[test]
    fn json_spells_words_as_the_core_does() {
        for outcome in core::Outcome::ALL {
            let json = serde_json::to_value(Outcome::from(*outcome)).unwrap();
            assert_eq!(json, outcome.as_str());
        }
        for declared in core::Declared::ALL {
            let json = serde_json::to_value(Declared::from(*declared)).unwrap();
            assert_eq!(json, declared.as_str());
        }
        for provenance in core::Provenance::ALL {
            let json = serde_json::to_value(Provenance::from(*provenance)).unwrap();
            assert_eq!(json, provenance.as_str());
        }
    }
}
