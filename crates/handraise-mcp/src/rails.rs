//! The ladder: in which order the ways to a human are tried (mcp.md §7).

use handraise_core::words::Rail;

/// The rails of one kind of question, in the order in which they are tried. What none of them serves is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ladder(Vec<Rail>);

/// Which kind of question a ladder is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Which of several things an ambiguous refusal means.
    Refusal,
    /// Whether a guarded call runs.
    Confirm,
}

/// Why words are no ladder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LadderError {
    /// A word that is no rail of this kind of question.
    #[error("\"{word}\" is none of its rails: {}", names(*of))]
    Unknown {
        /// The word.
        word: String,
        /// What the ladder is for.
        of: Asked,
    },
    /// One that stands twice.
    #[error("\"{0}\" stands twice")]
    Twice(Rail),
    /// Something behind the end.
    #[error("nothing comes after \"refuse\"")]
    BehindRefuse,
}

impl Asked {
    /// The rails that there are, in the order in which they are tried where nobody says otherwise.
    const fn rails(self) -> &'static [Rail] {
        match self {
            Self::Refusal => &[Rail::Form, Rail::Inbox, Rail::Refuse],
            Self::Confirm => &[Rail::Form, Rail::Inbox, Rail::Token, Rail::Refuse],
        }
    }
}

impl Ladder {
    /// The order where nobody says otherwise.
    pub fn usual(of: Asked) -> Self {
        Self(of.rails().to_vec())
    }

    /// The order that words name. Without `refuse` at their end it is meant.
    ///
    /// # Errors
    /// The first word that cannot stand where it does.
    pub fn parse<'a>(of: Asked, words: impl IntoIterator<Item = &'a str>) -> Result<Self, LadderError> {
        let mut rails: Vec<Rail> = Vec::new();
        for word in words {
            let known = of.rails().iter().find(|rail| rail.as_str() == word);
            let rail = *known.ok_or_else(|| LadderError::Unknown { word: word.to_owned(), of })?;
            if rails.contains(&rail) {
                return Err(LadderError::Twice(rail));
            }
            if rails.last() == Some(&Rail::Refuse) {
                return Err(LadderError::BehindRefuse);
            }
            rails.push(rail);
        }
        Ok(Self(rails))
    }

    /// The rails that are tried after one, or all of them.
    pub fn after(&self, tried: Option<Rail>) -> impl Iterator<Item = Rail> + '_ {
        let at = tried.and_then(|tried| self.0.iter().position(|rail| *rail == tried));
        self.0.iter().skip(at.map_or(0, |at| at + 1)).copied().take_while(|rail| *rail != Rail::Refuse)
    }

    /// Whether a rail is ever tried.
    pub fn has(&self, rail: Rail) -> bool {
        self.after(None).any(|one| one == rail)
    }
}

fn names(of: Asked) -> String {
    of.rails().iter().map(|rail| rail.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rails_are_tried_in_the_order_that_is_written() {
        let ladder = Ladder::parse(Asked::Confirm, ["inbox", "form"]).unwrap();
        assert_eq!(ladder.after(None).collect::<Vec<_>>(), [Rail::Inbox, Rail::Form]);
        assert_eq!(ladder.after(Some(Rail::Inbox)).collect::<Vec<_>>(), [Rail::Form]);
        assert_eq!(ladder.after(Some(Rail::Form)).count(), 0);
        assert!(ladder.has(Rail::Inbox) && !ladder.has(Rail::Token) && !ladder.has(Rail::Refuse));
        assert_eq!(Ladder::parse(Asked::Refusal, ["refuse"]).unwrap().after(None).count(), 0);
        assert_eq!(Ladder::parse(Asked::Refusal, []).unwrap().after(None).count(), 0);
    }

    #[test]
    fn what_is_no_ladder_is_named() {
        let error = |of, words: &[&str]| Ladder::parse(of, words.iter().copied()).unwrap_err().to_string();
        assert_eq!(
            error(Asked::Refusal, &["form", "token"]),
            "\"token\" is none of its rails: form, inbox, refuse"
        );
        assert_eq!(
            error(Asked::Confirm, &["Form"]),
            "\"Form\" is none of its rails: form, inbox, token, refuse"
        );
        assert_eq!(error(Asked::Confirm, &["form", "form"]), "\"form\" stands twice");
        assert_eq!(error(Asked::Refusal, &["refuse", "form"]), "nothing comes after \"refuse\"");
    }
}
