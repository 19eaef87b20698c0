//! Texts with places to fill: `{deviceId} ({platform})`.

/// The most bytes of a template.
const MAX_BYTES: usize = 4 * 1024;

/// A text with named places; `{{` and `}}` stand for the braces themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Place(String),
}

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A brace that nothing closes or opens.
    #[error("\"{0}\" has a brace without its counterpart: a brace itself is written twice")]
    Brace(String),
    /// A place that nothing fills.
    #[error("{{{0}}} is nothing that can be filled in")]
    Place(String),
    /// Longer than 4 KiB.
    #[error("a template of {0} bytes is too long: 4096 are the most")]
    TooLong(usize),
}

impl Template {
    pub(super) fn parse(text: &str) -> Result<Self, TemplateError> {
        if text.len() > MAX_BYTES {
            return Err(TemplateError::TooLong(text.len()));
        }
        let unbalanced = || TemplateError::Brace(text.to_owned());
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            if from.starts_with("{{") || from.starts_with("}}") {
                plain.push_str(&from[..1]);
                rest = &from[2..];
            } else {
                let (place, after) =
                    from.strip_prefix('{').and_then(|from| from.split_once('}')).ok_or_else(unbalanced)?;
                if place.is_empty() || place.contains('{') {
                    return Err(unbalanced());
                }
                parts.push(Part::Text(std::mem::take(&mut plain)));
                parts.push(Part::Place(place.to_owned()));
                rest = after;
            }
        }
        plain.push_str(rest);
        parts.push(Part::Text(plain));
        Ok(Self { parts })
    }

    /// Text and places in turn, beginning with text.
    pub(super) fn of(parts: &[&str]) -> Self {
        let part = |(index, part): (usize, &&str)| {
            let part = (*part).to_owned();
            if index % 2 == 0 { Part::Text(part) } else { Part::Place(part) }
        };
        Self { parts: parts.iter().enumerate().map(part).collect() }
    }

    /// The names of the places, in their order.
    pub(super) fn places(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Place(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The text with its places filled; nothing when one of them has no filling.
    pub(super) fn fill(&self, filling: impl Fn(&str) -> Option<String>) -> Option<String> {
        let mut filled = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Place(name) => filled.push_str(&filling(name)?),
            }
        }
        Some(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(template: &str) -> Option<String> {
        let filling = |name: &str| (name != "missing").then(|| name.to_uppercase());
        Template::parse(template).unwrap().fill(filling)
    }

    #[test]
    fn places_are_filled() {
        assert_eq!(fill("{a} ({b})").as_deref(), Some("A (B)"));
        assert_eq!(fill("").as_deref(), Some(""));
        assert_eq!(fill("{{{a}}} {{}}").as_deref(), Some("{A} {}"));
        assert_eq!(fill("{a}{missing}"), None);
    }

    #[test]
    fn a_brace_alone_is_named() {
        for text in ["{", "}", "a } b", "{a", "{}", "{a{b}}"] {
            assert_eq!(Template::parse(text), Err(TemplateError::Brace(text.into())), "{text}");
        }
    }
}
