//! What the agents' pipes, the operators and the store say of every ask, and where they contradict each other.
//!
//! An ask is known by its name, which stands in its message and is the key of its answer; an answer by its text, of
//! which there are no two. So a delivery says by itself which submission it carries.

use std::collections::BTreeMap;

/// What came back for an ask, on the agent's own pipe or on the stdout of `handraise ask`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Delivery {
    /// An answer of this text, under the ask's own key.
    Accept(String),
    /// A rejection, or a deadline that has passed.
    Decline,
    /// Taken back.
    Cancel,
    /// Anything else; never right.
    Other(String),
}

/// An ask that a process put, and what it got for it.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// Its name.
    pub(super) name: String,
    /// What came back, in the order in which it came.
    pub(super) deliveries: Vec<Delivery>,
    /// Whether a process on its way was ended while it was open: then it may have got nothing.
    pub(super) is_broken_off: bool,
    /// Whether the process says that it could not ask.
    pub(super) is_refused: bool,
}

/// What an operator was told about a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Told {
    /// 200: it counts.
    Won,
    /// 200 `replayed`: this operator's equal submission counts.
    Replayed,
    /// 404: something else counts.
    NotFound,
    /// 503: not delivered.
    NotDelivered,
    /// 504: unknown.
    Unknown,
    /// The connection ended before the answer.
    Nothing,
    /// Another status; never right.
    Other(u16),
}

/// What an operator sent.
#[derive(Debug, Clone)]
pub(super) struct Submission {
    /// The ask's id at the inbox.
    pub(super) ask: String,
    /// The text of the answer; `None`: the Skip control.
    pub(super) text: Option<String>,
    /// What the operator was told.
    pub(super) told: Told,
}

/// What the store says in the end.
#[derive(Debug, Clone, Default)]
pub(super) struct Stored {
    /// The ask's id.
    pub(super) id: String,
    /// Its message.
    pub(super) name: String,
    /// `open`, `sent` or `settled`.
    pub(super) state: String,
    /// The settlement's outcome.
    pub(super) outcome: String,
    /// The settlement's provenance.
    pub(super) provenance: String,
    /// The settlement's text.
    pub(super) text: Option<String>,
    /// Whether its holder is connected.
    pub(super) is_held: bool,
}

/// Everything that was seen of a run.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// From the processes that asked.
    pub(super) asked: Vec<Asked>,
    /// From the operators.
    pub(super) submissions: Vec<Submission>,
    /// From the store.
    pub(super) stored: Vec<Stored>,
}

/// What may differ once a process was killed between an answer's way and the word about it: "none or one" after a
/// crash. Counted, and shown beside the verdict.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Excused {
    /// Answers that count, and that a process which was ended did not get any more.
    pub(super) not_delivered: usize,
    /// Answers that a process got whose holder was ended before it could say so.
    pub(super) not_reported: usize,
    /// Answers of which nobody can say whether they arrived, because the holder was ended first.
    pub(super) unknown: usize,
}

/// Judges it: one line for each violation.
pub(super) fn judge(evidence: &Evidence) -> (Vec<String>, Excused) {
    let mut judge = Judge { violations: Vec::new(), excused: Excused::default() };
    let mut by_name: BTreeMap<&str, Vec<&Stored>> = BTreeMap::new();
    for stored in &evidence.stored {
        by_name.entry(&stored.name).or_default().push(stored);
    }
    let mut by_ask: BTreeMap<&str, Vec<&Submission>> = BTreeMap::new();
    for submission in &evidence.submissions {
        by_ask.entry(&submission.ask).or_default().push(submission);
    }
    let mut names: BTreeMap<&str, &Asked> = BTreeMap::new();
    for asked in &evidence.asked {
        if names.insert(&asked.name, asked).is_some() {
            judge.violates(&asked.name, "was put by two processes");
        }
        let stored = by_name.get(asked.name.as_str()).map_or(&[][..], Vec::as_slice);
        judge.pipe(asked, stored);
    }
    for stored in &evidence.stored {
        let submissions = by_ask.get(stored.id.as_str()).map_or(&[][..], Vec::as_slice);
        let asked = names.get(stored.name.as_str()).copied();
        if asked.is_none() {
            judge.violates(&stored.name, "is in the store, and no process says that it asked it");
        }
        judge.store(stored, submissions, asked);
    }
    for (ask, submissions) in by_ask {
        if !evidence.stored.iter().any(|stored| stored.id == ask) {
            judge.violates(ask, &format!("has {} submissions and is not in the store", submissions.len()));
        }
    }
    (judge.violations, judge.excused)
}

struct Judge {
    violations: Vec<String>,
    excused: Excused,
}

impl Judge {
    fn violates(&mut self, name: &str, what: &str) {
        self.violations.push(format!("{name}: {what}"));
    }

    /// What the process that asked got, and how often.
    fn pipe(&mut self, asked: &Asked, stored: &[&Stored]) {
        if stored.len() > 1 {
            self.violates(&asked.name, &format!("is in the store {} times", stored.len()));
        }
        if asked.deliveries.len() > 1 {
            self.violates(&asked.name, &format!("was delivered twice or more: {:?}", asked.deliveries));
        }
        if asked.deliveries.is_empty() && asked.is_refused && !asked.is_broken_off && !stored.is_empty() {
            self.violates(&asked.name, "was in the inbox, and its process gave up");
        }
        if asked.deliveries.is_empty() && !asked.is_broken_off && !asked.is_refused {
            self.violates(&asked.name, "got nothing, and its process lived");
        }
        for delivery in &asked.deliveries {
            if let Delivery::Other(what) = delivery {
                self.violates(&asked.name, &format!("got {what}"));
            }
        }
        if stored.is_empty() && asked.deliveries.iter().any(|d| matches!(d, Delivery::Accept(_))) {
            self.violates(&asked.name, "was answered, and the store does not know it");
        }
    }

    /// How it ended in the store, beside what the operators were told and what the process got.
    fn store(&mut self, stored: &Stored, submissions: &[&Submission], asked: Option<&Asked>) {
        let name = &stored.name;
        if stored.state != "settled" {
            match asked.filter(|asked| stored.state == "sent" && asked.is_broken_off && !stored.is_held) {
                Some(asked) => self.unknown(name, submissions, asked),
                None => self.violates(name, &format!("has not ended: it is {}", stored.state)),
            }
            return;
        }
        let winners = submissions.iter().filter(|submission| submission.told == Told::Won).count();
        if winners > 1 {
            self.violates(name, &format!("{winners} submissions were told that they count"));
        }
        let of_people = stored.provenance == "client" || stored.provenance == "human";
        let counts = |text: Option<&String>| match text {
            Some(_) => stored.outcome == "accept" && stored.text.as_ref() == text,
            None => stored.outcome == "decline" && of_people,
        };
        for submission in submissions {
            let text = submission.text.as_ref();
            let what = text.map_or("a rejection", String::as_str);
            match submission.told {
                Told::Won | Told::Replayed if !counts(text) => {
                    let how = format!("{} {:?}", stored.outcome, stored.text);
                    self.violates(name, &format!("{what} was told that it counts, and the store says {how}"));
                }
                // Rejections are all alike: that one counts does not say which.
                Told::NotFound | Told::NotDelivered if text.is_some() && counts(text) => {
                    let told = submission.told;
                    self.violates(name, &format!("{what} counts, and was told {told:?}"));
                }
                Told::Other(status) => self.violates(name, &format!("{what} got the status {status}")),
                _ => {}
            }
        }
        let sent =
            |text: &String| submissions.iter().any(|submission| submission.text.as_ref() == Some(text));
        if let Some(text) = stored.text.as_ref().filter(|text| !sent(text)) {
            self.violates(name, &format!("ended with {text}, which nobody sent for it"));
        }
        if let Some(asked) = asked {
            self.both(stored, submissions, asked);
        }
    }

    /// Its holder was killed with an answer on its way: what became of that is not known, and is looked for for a day. So
    /// nobody was told what became of it either, and what the process got, if anything, is that answer or the end that a
    /// holder makes by itself.
    fn unknown(&mut self, name: &str, submissions: &[&Submission], asked: &Asked) {
        let is_unknown = |submission: &&&Submission| matches!(submission.told, Told::Unknown | Told::Nothing);
        if submissions.iter().all(|submission| !is_unknown(&submission)) {
            self.violates(name, "is sent, and no operator waits to hear what became of an answer");
        }
        for submission in submissions {
            if matches!(submission.told, Told::Won | Told::Replayed | Told::Other(_)) {
                self.violates(name, &format!("is sent, and an operator was told {:?}", submission.told));
            }
        }
        let sent = |text: &String| {
            submissions.iter().filter(is_unknown).any(|submission| submission.text.as_ref() == Some(text))
        };
        if let Some(Delivery::Accept(text)) = asked.deliveries.first()
            && !sent(text)
        {
            self.violates(name, &format!("is sent, and got {text}, which is not what is on its way"));
        }
        self.excused.unknown += 1;
    }

    /// What the process got is what the store says.
    fn both(&mut self, stored: &Stored, submissions: &[&Submission], asked: &Asked) {
        let Some(delivery) = asked.deliveries.first() else {
            // That its process lived and got nothing is said already.
            self.excused.not_delivered += usize::from(asked.is_broken_off && stored.outcome == "accept");
            return;
        };
        let is_same = match delivery {
            Delivery::Accept(text) => stored.outcome == "accept" && stored.text.as_ref() == Some(text),
            Delivery::Decline => ["decline", "timeout"].contains(&stored.outcome.as_str()),
            Delivery::Cancel => ["cancel", "withdrawn"].contains(&stored.outcome.as_str()),
            Delivery::Other(_) => true,
        };
        // Its holder was ended between the delivery and the word about it. Still it must be an answer that somebody
        // sent for it, and whoever sent it was not told anything else.
        let was_sent = match delivery {
            Delivery::Accept(text) => submissions.iter().any(|submission| {
                submission.text.as_ref() == Some(text)
                    && matches!(submission.told, Told::Unknown | Told::Nothing)
            }),
            _ => true,
        };
        if is_same {
        } else if asked.is_broken_off && was_sent && stored.outcome != "accept" {
            self.excused.not_reported += 1;
        } else {
            let how = format!("{} {:?} ({})", stored.outcome, stored.text, stored.provenance);
            self.violates(&stored.name, &format!("got {delivery:?}, and the store says {how}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One ask that was answered, and a second answer that came too late: as it should be.
    fn fine() -> Evidence {
        let submission =
            |text: &str, told| Submission { ask: "id".to_owned(), text: Some(text.to_owned()), told };
        Evidence {
            asked: vec![Asked {
                name: "a".to_owned(),
                deliveries: vec![Delivery::Accept("one".to_owned())],
                is_broken_off: false,
                is_refused: false,
            }],
            submissions: vec![submission("one", Told::Won), submission("two", Told::NotFound)],
            stored: vec![Stored {
                id: "id".to_owned(),
                name: "a".to_owned(),
                state: "settled".to_owned(),
                outcome: "accept".to_owned(),
                provenance: "client".to_owned(),
                text: Some("one".to_owned()),
                is_held: false,
            }],
        }
    }

    /// What is wrong once this was done to what is fine.
    fn wrong(change: impl FnOnce(&mut Evidence)) -> String {
        let mut evidence = fine();
        change(&mut evidence);
        judge(&evidence).0.join("\n")
    }

    #[test]
    fn what_is_fine_is_no_violation() {
        assert_eq!(judge(&fine()), (vec![], Excused::default()));
    }

    #[test]
    fn a_doubled_answer_is_found_on_the_pipe_in_the_store_and_in_what_was_told() {
        let twice = wrong(|e| e.asked[0].deliveries.push(Delivery::Accept("two".to_owned())));
        assert!(twice.contains("delivered twice"), "{twice}");
        // Also one that was broken off has it once at most.
        let twice = wrong(|e| {
            e.asked[0].is_broken_off = true;
            e.asked[0].deliveries.push(Delivery::Accept("one".to_owned()));
        });
        assert!(twice.contains("delivered twice"), "{twice}");
        let twice = wrong(|e| {
            let again = Stored { id: "other".to_owned(), ..e.stored[0].clone() };
            e.stored.push(again);
        });
        assert!(twice.contains("in the store 2 times"), "{twice}");
        let twice = wrong(|e| e.submissions[1].told = Told::Won);
        assert!(twice.contains("2 submissions were told"), "{twice}");
    }

    #[test]
    fn a_lost_answer_is_found() {
        let lost = wrong(|e| e.asked[0].deliveries.clear());
        assert!(lost.contains("got nothing, and its process lived"), "{lost}");
        let lost = wrong(|e| e.stored.clear());
        assert!(lost.contains("the store does not know it"), "{lost}");
        assert!(lost.contains("is not in the store"), "{lost}");
        let lost = wrong(|e| {
            (e.stored[0].outcome, e.stored[0].text) = ("timeout".to_owned(), None);
            e.asked[0].deliveries = vec![Delivery::Decline];
        });
        assert!(lost.contains("was told that it counts, and the store says timeout"), "{lost}");
    }

    #[test]
    fn an_ask_that_has_not_ended_is_found() {
        for state in ["open", "sent"] {
            let open = wrong(|e| e.stored[0].state = state.to_owned());
            assert!(open.contains("has not ended"), "{open}");
        }
    }

    #[test]
    fn an_answer_on_its_way_to_a_killed_holder_is_unknown_and_nobody_was_told_more() {
        let unknown = |e: &mut Evidence| {
            e.stored[0].state = "sent".to_owned();
            e.asked[0].is_broken_off = true;
            e.submissions[0].told = Told::Unknown;
        };
        let mut evidence = fine();
        unknown(&mut evidence);
        assert_eq!(judge(&evidence), (vec![], Excused { unknown: 1, ..Excused::default() }));
        // Whether the process got it or not.
        let and = |change: fn(&mut Evidence)| {
            wrong(|e| {
                unknown(e);
                change(e);
            })
        };
        assert_eq!(and(|e| e.asked[0].deliveries.clear()), "");
        assert!(and(|e| e.stored[0].state = "open".to_owned()).contains("has not ended"));
        assert!(and(|e| e.asked[0].is_broken_off = false).contains("has not ended"));
        assert!(
            and(|e| e.stored[0].is_held = true).contains("has not ended"),
            "a holder that is there is asked"
        );
        assert!(and(|e| e.submissions[0].told = Told::NotDelivered).contains("no operator waits"));
        assert!(and(|e| e.submissions[1].told = Told::Won).contains("was told Won"));
        let other = and(|e| e.asked[0].deliveries = vec![Delivery::Accept("two".to_owned())]);
        assert!(other.contains("not what is on its way"), "{other}");
    }

    #[test]
    fn an_answer_that_counts_was_told_nothing_else() {
        for told in [Told::NotFound, Told::NotDelivered] {
            let untrue = wrong(|e| e.submissions[0].told = told);
            assert!(untrue.contains("one counts, and was told"), "{untrue}");
        }
        for told in [Told::Unknown, Told::Nothing] {
            assert_eq!(wrong(|e| e.submissions[0].told = told), "");
        }
        assert!(wrong(|e| e.submissions[1].told = Told::Other(500)).contains("status 500"));
    }

    #[test]
    fn another_answer_than_the_stored_one_is_found() {
        let other = wrong(|e| e.asked[0].deliveries = vec![Delivery::Accept("two".to_owned())]);
        assert!(other.contains("got Accept(\"two\")"), "{other}");
        let invented = wrong(|e| {
            e.asked[0].deliveries = vec![Delivery::Accept("three".to_owned())];
            e.stored[0].text = Some("three".to_owned());
        });
        assert!(invented.contains("which nobody sent"), "{invented}");
        let declined = wrong(|e| e.asked[0].deliveries = vec![Delivery::Decline]);
        assert!(declined.contains("got Decline"), "{declined}");
    }

    #[test]
    fn after_a_crash_it_is_none_or_one_and_counted() {
        let mut evidence = fine();
        evidence.asked[0].is_broken_off = true;
        evidence.asked[0].deliveries.clear();
        assert_eq!(judge(&evidence), (vec![], Excused { not_delivered: 1, not_reported: 0, unknown: 0 }));

        let mut evidence = fine();
        evidence.asked[0].is_broken_off = true;
        evidence.submissions[0].told = Told::Unknown;
        (evidence.stored[0].outcome, evidence.stored[0].text) = ("withdrawn".to_owned(), None);
        evidence.stored[0].provenance = "system".to_owned();
        assert_eq!(judge(&evidence), (vec![], Excused { not_delivered: 0, not_reported: 1, unknown: 0 }));
        // Not when the operator was told that it did not get through.
        evidence.submissions[0].told = Told::NotDelivered;
        assert!(!judge(&evidence).0.is_empty());
    }

    #[test]
    fn an_ask_that_could_not_be_asked_is_nowhere() {
        let refused = |e: &mut Evidence| {
            (e.asked[0].is_refused, e.asked[0].deliveries) = (true, vec![]);
        };
        assert!(wrong(refused).contains("its process gave up"));
        let nowhere = wrong(|e| {
            refused(e);
            e.stored.clear();
            e.submissions.clear();
        });
        assert_eq!(nowhere, "");
    }
}
