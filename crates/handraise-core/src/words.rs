//! The closed vocabularies of the product, each with the one spelling that goes on every wire.

/// Declares a closed vocabulary: an enum whose variants know their wire spelling.
macro_rules! vocabulary {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_meta])* $variant,)+ }

        impl $name {
            /// Every member, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The spelling used on every wire, in the database and in reports.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::words::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::words::UnknownWord { vocabulary: stringify!($name) }),
                }
            }
        }
    };
}

pub(crate) use vocabulary;

/// A word that a vocabulary does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not one of the words of {vocabulary}")]
pub struct UnknownWord {
    /// The vocabulary that was asked.
    pub vocabulary: &'static str,
}

vocabulary! {
    /// Where an ask comes from; decides which answers are valid (F3, F6).
    Source {
        /// An ACP or MCP `elicitation/create`.
        Elicitation = "elicitation",
        /// An ACP `session/request_permission`.
        Permission = "permission",
        /// An ambiguous refusal of an MCP tool, turned into a question.
        Refusal = "refusal",
        /// A guarded MCP tool call that needs a confirmation.
        Confirm = "confirm",
        /// `ask_user_question` of `handraise tool`.
        Tool = "tool",
        /// `handraise ask` from a script or hook.
        Script = "script",
    }
}

vocabulary! {
    /// How a question is put: as a form, or as a page to open.
    Mode {
        /// Questions with fields.
        Form = "form",
        /// A link that the human opens elsewhere.
        Url = "url",
    }
}

vocabulary! {
    /// The shape of the answer that a question takes.
    Kind {
        /// Exactly one of the choices.
        Single = "single",
        /// Any number of the choices.
        Multi = "multi",
        /// Free text.
        Text = "text",
        /// Yes or no.
        Boolean = "boolean",
        /// A JSON number.
        Number = "number",
        /// A JSON number without a fraction.
        Integer = "integer",
    }
}

vocabulary! {
    /// What a companion's free text does to the selection beside it (form.md, "Answers → content").
    Companion {
        /// The text stands instead of the selection; the question's own key is omitted.
        Replaces = "replaces",
        /// Both are sent.
        Adds = "adds",
    }
}

vocabulary! {
    /// How an ask ended.
    Outcome {
        /// Answered and delivered.
        Accept = "accept",
        /// Refused: skipped by a human, or by a rule.
        Decline = "decline",
        /// The turn or call around it was cancelled.
        Cancel = "cancel",
        /// Nobody answered before the deadline.
        Timeout = "timeout",
        /// The client's answer could not be used.
        Invalid = "invalid",
        /// The rail failed.
        Error = "error",
        /// No usable rail.
        NotOffered = "not_offered",
        /// Switched off by configuration.
        Disabled = "disabled",
        /// Answered from decline memory.
        Remembered = "remembered",
        /// Sent to the client, whose answer comes with its retry.
        Asked = "asked",
        /// The request that asked died before an answer.
        Withdrawn = "withdrawn",
    }
}

vocabulary! {
    /// Who stands behind an outcome (S15).
    Provenance {
        /// A signed-in page session, or an interactive terminal, that painted the question.
        Human = "human",
        /// A client or token reported it; no person was seen.
        Client = "client",
        /// A client answered faster than a person can, or said that it cannot show questions.
        NotShown = "not_shown",
        /// A deadline, a policy or a shutdown.
        System = "system",
    }
}

vocabulary! {
    /// How an ask reaches a human.
    Rail {
        /// The client's own prompt.
        Form = "form",
        /// A link to one question page of the inbox.
        Url = "url",
        /// The operator's inbox.
        Inbox = "inbox",
        /// Preview, then confirm token, in the chat.
        Token = "token",
        /// The original refusal.
        Refuse = "refuse",
    }
}

vocabulary! {
    /// The protocol generation that an ask belongs to. Decided per request, never from headers.
    Era {
        /// MCP 2025-x: the server sends the question as a request of its own.
        Push = "push",
        /// MCP 2026-07-28: `input_required`, then a retry.
        Mrtr = "mrtr",
        /// A task of either MCP era.
        Task = "task",
        /// The Agent Client Protocol.
        Acp = "acp",
        /// `handraise ask`, the tool, a hook.
        Local = "local",
    }
}

vocabulary! {
    /// What the caller of one request declared that it can be asked (mcp.md §2).
    Declared {
        /// Nothing, or something malformed.
        None = "none",
        /// An elicitation capability that names no mode, which means forms.
        Bare = "bare",
        /// Forms.
        Form = "form",
        /// Links only: a form must not be sent.
        Url = "url",
        /// Forms and links.
        Both = "both",
        /// Nothing is known about this caller. Never read as [`Declared::None`].
        Unknown = "unknown",
    }
}

impl Declared {
    /// Whether the caller said that it takes forms. [`Declared::Unknown`] said nothing.
    pub const fn takes_forms(self) -> bool {
        matches!(self, Self::Bare | Self::Form | Self::Both)
    }

    /// Whether the caller said that it takes links.
    pub const fn takes_links(self) -> bool {
        matches!(self, Self::Url | Self::Both)
    }
}

vocabulary! {
    /// What happens to an ask at its deadline.
    OnDeadline {
        /// It is declined.
        Decline = "decline",
        /// The guarded call is refused.
        Refuse = "refuse",
    }
}

vocabulary! {
    /// The action of an elicitation response, as MCP and ACP spell it.
    WireAction {
        /// The content follows.
        Accept = "accept",
        /// The human (or the deadline) declined.
        Decline = "decline",
        /// The question died with its turn.
        Cancel = "cancel",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back_as_itself() {
        for outcome in Outcome::ALL {
            assert_eq!(outcome.as_str().parse(), Ok(*outcome));
        }
        for source in Source::ALL {
            assert_eq!(source.as_str().parse(), Ok(*source));
        }
        for era in Era::ALL {
            assert_eq!(era.as_str().parse(), Ok(*era));
        }
        for declared in Declared::ALL {
            assert_eq!(declared.as_str().parse(), Ok(*declared));
        }
        assert_eq!("Accept".parse::<Outcome>(), Err(UnknownWord { vocabulary: "Outcome" }));
    }

    #[test]
    fn what_is_unknown_is_neither_yes_nor_no() {
        let forms: Vec<_> = Declared::ALL.iter().filter(|declared| declared.takes_forms()).collect();
        assert_eq!(forms, [&Declared::Bare, &Declared::Form, &Declared::Both]);
        let links: Vec<_> = Declared::ALL.iter().filter(|declared| declared.takes_links()).collect();
        assert_eq!(links, [&Declared::Url, &Declared::Both]);
        assert_ne!(Declared::Unknown, Declared::None);
    }
}
