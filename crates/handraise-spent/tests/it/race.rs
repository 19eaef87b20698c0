//! Two processes, one folder.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

/// A process that claims each nonce whose number it is told.
struct Claimer {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Claimer {
    fn start(base: &std::path::Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_handraise-spent-claim"))
            .arg(base)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, answers }
    }

    fn claim(&mut self, number: u64) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{number}").unwrap();
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

#[test]
fn s5_of_two_processes_that_race_for_a_nonce_one_wins_a_thousand_times() {
    let base = tempfile::tempdir().unwrap();
    let (mut one, mut other) = (Claimer::start(base.path()), Claimer::start(base.path()));
    let mut wins = [0, 0];
    for number in 0..1_000 {
        // Who is told first takes turns.
        let (first, second) = if number % 2 == 0 { (&mut one, &mut other) } else { (&mut other, &mut one) };
        first.claim(number);
        second.claim(number);
        let answers = (one.answer(), other.answer());
        match (answers.0.as_str(), answers.1.as_str()) {
            ("Unspent", "Spent") => wins[0] += 1,
            ("Spent", "Unspent") => wins[1] += 1,
            _ => panic!("{number}: {answers:?}"),
        }
    }
    assert_eq!(wins[0] + wins[1], 1_000);
    assert!(wins[0] > 0 && wins[1] > 0, "no race: {wins:?}");
    for mut claimer in [one, other] {
        drop(claimer.child.stdin.take());
        assert!(claimer.child.wait().unwrap().success());
    }
}
