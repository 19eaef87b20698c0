//! `requestedSchema` → questions: the ordered rules, companions and order (form.md).

use serde_json::{Map, Value};

use super::choices;
use super::limits::{MAX_CHOICES, MAX_MESSAGE_BYTES, MAX_PATTERNS, MAX_PROPERTIES, check_schema};
use super::order::{arrange, compare_keys};
use super::pattern;
use super::profile::{FormProfile, PromptRule};
use super::property::{Property, Shape, Type, at};
use super::refusal::{Ignored, IgnoredPart, Refusal, shorten};
use super::secret::looks_secret;
use super::{Field, Form, FormRequest, Mapped, TextTo, number};
use crate::ask::{Constraints, Question};
use crate::words::{Companion, Kind};

/// Turns a requested schema into questions (form.md, "Mapping").
///
/// The cost is linear in the schema, apart from the sorting of its keys.
///
/// # Errors
/// When nothing in it can be asked, or it is beyond a size limit: the request is then declined without
/// reaching anyone (AC-18), and the refusal says why.
pub fn map(request: &FormRequest<'_>, profile: &FormProfile) -> Result<Mapped, Refusal> {
    let found = request.message.len();
    if found > MAX_MESSAGE_BYTES {
        return Err(Refusal::MessageTooLarge { found, limit: MAX_MESSAGE_BYTES });
    }
    let schema = request.schema.as_object().ok_or(Refusal::NotAnObject)?;
    check_schema(schema)?;
    let properties = schema.get("properties").and_then(Value::as_object).ok_or(Refusal::NoQuestions)?;
    if properties.len() > MAX_PROPERTIES {
        return Err(Refusal::TooManyProperties { found: properties.len(), limit: MAX_PROPERTIES });
    }
    let mut mapping = Mapping { message: request.message, profile, ignored: Vec::new(), patterns: 0 };
    let (mut questions, companions) = mapping.sort_out(properties, &Required::read(schema));
    arrange(&mut questions, profile.order, |(property, ..)| property.key);
    let companions = mapping.pair(&questions, companions);

    let mut form =
        Form { questions: Vec::with_capacity(questions.len()), fields: Vec::with_capacity(questions.len()) };
    for ((property, shape, required), companion) in questions.into_iter().zip(companions) {
        let (question, field) = mapping.question(&property, shape, required, companion.as_ref())?;
        form.questions.push(question);
        form.fields.push(field);
    }
    if form.questions.is_empty() {
        return Err(Refusal::NoQuestions);
    }
    Ok(Mapped { form, ignored: mapping.ignored })
}

/// A property that becomes a question, by which rule, and whether it must be answered.
type Candidate<'a> = (Property<'a>, Shape<'a>, bool);

/// A property that is the companion of the question with this key.
type Marked<'a> = (&'a str, Property<'a>);

struct Mapping<'a> {
    message: &'a str,
    profile: &'a FormProfile,
    ignored: Vec<Ignored>,
    patterns: usize,
}

impl<'a> Mapping<'a> {
    /// Tells questions, companions and the rest apart, in the order of the JSON text.
    fn sort_out(
        &mut self,
        properties: &'a Map<String, Value>,
        required: &Required<'_>,
    ) -> (Vec<Candidate<'a>>, Vec<Marked<'a>>) {
        let mut questions = Vec::with_capacity(properties.len());
        let mut companions = Vec::new();
        let has_choices = |key: &str| {
            properties.get_key_value(key).is_some_and(|(key, value)| {
                matches!(Property::read(key, value).shape(), Shape::Choices { .. })
            })
        };
        for (key, value) in properties {
            let property = Property::read(key, value);
            let required = required.holds(key);
            if !property.is_never_companion()
                && let Some(question) = property.companion_of(self.profile.markers, required, has_choices)
            {
                companions.push((question, property));
                continue;
            }
            match property.shape() {
                Shape::Ignored => self.ignore(&property, IgnoredPart::Property),
                shape => questions.push((property, shape, required)),
            }
        }
        (questions, companions)
    }

    /// Finds each question's companion; of two the one whose key sorts first (D2). Parallel to `questions`.
    fn pair(
        &mut self,
        questions: &[Candidate<'a>],
        mut companions: Vec<Marked<'a>>,
    ) -> Vec<Option<Property<'a>>> {
        companions
            .sort_by(|(a, first), (b, second)| a.cmp(b).then_with(|| compare_keys(first.key, second.key)));
        let mut taken = vec![false; companions.len()];
        let pairs = questions
            .iter()
            .map(|(property, ..)| {
                let at = companions.partition_point(|(question, _)| *question < property.key);
                let (_, companion) = companions.get(at).filter(|(question, _)| *question == property.key)?;
                taken[at] = true;
                Some(*companion)
            })
            .collect();
        for (at, (question, companion)) in companions.iter().enumerate() {
            if taken[at] {
                continue;
            }
            let second = at.checked_sub(1).is_some_and(|before| companions[before].0 == *question);
            let part = if second { IgnoredPart::SecondCompanion } else { IgnoredPart::StrayCompanion };
            self.ignore(companion, part);
        }
        pairs
    }

    fn question(
        &mut self,
        property: &Property<'a>,
        shape: Shape<'a>,
        required: bool,
        companion: Option<&Property<'a>>,
    ) -> Result<(Question, Field), Refusal> {
        let (prompt, title) = self.words(property);
        let mut listed = Vec::new();
        let mut consts = None;
        let mut default = None;
        let (kind, mut constraints) = match shape {
            Shape::Choices { many, listed: entries, kind: of } => {
                let found = entries.len();
                if found > MAX_CHOICES {
                    let question = shorten(property.key);
                    return Err(Refusal::TooManyChoices { question, found, limit: MAX_CHOICES });
                }
                let read = choices::read(entries, of, self.profile.previews);
                if read.left_out {
                    self.ignore(property, IgnoredPart::Choices);
                }
                default = property.default.and_then(|default| choices::default_of(default, many, &read));
                let empty = read.list.is_empty();
                (listed, consts) = (read.list, read.consts);
                match (empty, many) {
                    (false, true) => (Kind::Multi, property.item_constraints()),
                    (false, false) => (Kind::Single, Constraints::default()),
                    (true, _) => Self::without_choices(property, of, &mut default),
                }
            }
            Shape::Boolean => {
                default = property.default.filter(|default| default.is_boolean()).cloned();
                (Kind::Boolean, Constraints::default())
            }
            Shape::Number { integer } => Self::number(property, integer, &mut default),
            Shape::Text | Shape::Ignored => {
                default = property.default.filter(|default| default.is_string()).cloned();
                (Kind::Text, property.text_constraints())
            }
        };
        // What is typed at a number is the number: there is no other text.
        let numeric = matches!(kind, Kind::Number | Kind::Integer);
        if let Some(companion) = companion.filter(|_| numeric) {
            self.ignore(companion, IgnoredPart::StrayCompanion);
        }
        let companion = companion.filter(|_| !numeric);
        // Numbers as choices are numbers on the wire, where words have no place.
        let own_words = self.profile.own_words
            && companion.is_none()
            && consts.is_none()
            && matches!(kind, Kind::Single | Kind::Multi);
        let typed = kind == Kind::Text || companion.is_some() || own_words;
        if let Some(companion) = companion {
            let of_text = companion.text_constraints();
            constraints = Constraints {
                min_length: of_text.min_length,
                max_length: of_text.max_length,
                format: of_text.format,
                ..constraints
            };
        }
        if typed {
            constraints.pattern = self.pattern(companion.unwrap_or(property));
        }
        let secret = self.is_secret(property, companion, kind);
        if secret {
            default = None;
        }
        if property.default.is_some() && default.is_none() {
            self.ignore(property, IgnoredPart::Default);
        }
        let text = match companion {
            Some(companion) => TextTo::Companion(companion.key.to_owned()),
            None if own_words && kind == Kind::Multi => TextTo::Among,
            None if own_words || kind == Kind::Text => TextTo::Own,
            None => TextTo::Nowhere,
        };
        let beside = match (companion, own_words, kind) {
            (Some(_), ..) => Some(self.profile.companion),
            (None, true, Kind::Multi) => Some(Companion::Adds),
            (None, true, _) => Some(Companion::Replaces),
            (None, false, _) => None,
        };
        let question = Question {
            id: property.key.to_owned(),
            kind,
            title,
            prompt,
            required,
            default,
            allows_text: typed,
            companion: beside,
            secret,
            choices: listed,
            constraints,
        };
        Ok((question, Field { text, consts }))
    }

    /// What a question is when none of its choices could be used: text, or a number where only that fits.
    fn without_choices(
        property: &Property<'a>,
        kind: Type,
        default: &mut Option<Value>,
    ) -> (Kind, Constraints) {
        match kind {
            Type::Number | Type::Integer => Self::number(property, kind == Type::Integer, default),
            Type::String | Type::Array | Type::Boolean => (Kind::Text, property.text_constraints()),
        }
    }

    fn number(property: &Property<'a>, integer: bool, default: &mut Option<Value>) -> (Kind, Constraints) {
        let given = property.default.and_then(Value::as_number);
        *default = match given {
            Some(given) if integer => number::to_integer(given).map(Value::Number),
            given => given.cloned().map(Value::Number),
        };
        (if integer { Kind::Integer } else { Kind::Number }, property.number_constraints())
    }

    /// The prompt and the title (AC-05, AC-06).
    fn words(&self, property: &Property<'a>) -> (String, Option<String>) {
        let swapped = match self.profile.prompt {
            PromptRule::DescriptionAsks => false,
            PromptRule::TitleAsksWhere(path) => property.meta.is_some_and(|meta| at(meta, path).is_some()),
        };
        let (asks, heading) = if swapped {
            (property.title, property.description)
        } else {
            (property.description, property.title)
        };
        let message = Some(self.message).filter(|message| !message.trim().is_empty());
        let prompt = asks.or(message).or(heading).unwrap_or(property.key);
        (prompt.to_owned(), heading.map(str::to_owned))
    }

    /// What is typed there and looks like a secret is one; picks among visible choices are none, unless the agent
    /// says so.
    fn is_secret(&self, property: &Property<'a>, companion: Option<&Property<'a>>, kind: Kind) -> bool {
        let marked = |property: &Property<'a>| {
            property.is_secret
                || property.meta.is_some_and(|meta| {
                    self.profile.secrets.iter().any(|path| at(meta, path) == Some(&Value::Bool(true)))
                })
        };
        let typed = matches!(kind, Kind::Text | Kind::Number | Kind::Integer) || companion.is_some();
        marked(property)
            || companion.is_some_and(marked)
            || (typed && looks_secret(property.key, property.title, property.format))
            || companion
                .is_some_and(|companion| looks_secret(companion.key, companion.title, companion.format))
    }

    /// The pattern of a text, if it can be checked here.
    fn pattern(&mut self, property: &Property<'a>) -> Option<String> {
        let source = property.pattern?;
        self.patterns += 1;
        if self.patterns <= MAX_PATTERNS && pattern::compile(source).is_some() {
            return Some(source.to_owned());
        }
        self.ignore(property, IgnoredPart::Pattern);
        None
    }

    fn ignore(&mut self, property: &Property<'a>, part: IgnoredPart) {
        self.ignored.push(Ignored { key: shorten(property.key), part });
    }
}

/// The keys that `required` names, ready to be looked up.
struct Required<'a>(Vec<&'a str>);

impl<'a> Required<'a> {
    fn read(schema: &'a Map<String, Value>) -> Self {
        let names = schema.get("required").and_then(Value::as_array);
        let mut names: Vec<&str> = names.into_iter().flatten().filter_map(Value::as_str).collect();
        names.sort_unstable();
        Self(names)
    }

    fn holds(&self, key: &str) -> bool {
        self.0.binary_search(&key).is_ok()
    }
}
