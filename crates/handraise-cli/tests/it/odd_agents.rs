//! Agents that do what no agent should, as real processes behind a real inbox: each gets what it is due, and nothing
//! else breaks. Noise, lines of 100 MB and agents that die are in `faults`, the ends of asks in `answers`.

use serde_json::{Value, json};

use crate::support::{Agent, BOUND, Home, Up, pause, pick, resume, say, terminate, wait_for, wait_within};

#[test]
fn an_agent_that_writes_byte_by_byte_behind_byte_order_marks_is_understood() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "pieces");
    let ask = up.wait_for_ask();
    assert_eq!(ask["message"], "Grüße, 手を挙げて 🖐️");
    assert_eq!(up.answer(&ask, &say("apiKey", "schön")).status, 200);
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    assert_eq!(agent.responses(), [json!({"action": "accept", "content": {"apiKey": "schön"}})]);
    assert!(agent.text.text().starts_with("Grüße, 手を挙げて 🖐️\n"), "{}", agent.text.text());
}

#[test]
fn answers_to_what_nobody_asked_and_second_answers_change_nothing() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "strays");
    let ask = up.wait_for_ask();
    assert_eq!(up.answer(&ask, &pick("question_0", &["SQLite"])).status, 200);
    assert_eq!(agent.wait(), Some(0), "the first answer to the prompt counts: {}", agent.log.text());
    assert_eq!(agent.responses(), [json!({"action": "accept", "content": {"question_0": "SQLite"}})]);
    assert_eq!(agent.count("session/prompt"), 1);
}

#[test]
fn a_cancelled_prompt_that_is_answered_three_times_was_cancelled() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "cancelled-thrice");
    let ask = up.wait_for_ask();
    terminate(agent.child.id());
    assert_eq!(up.wait_for_settlement(&ask)["outcome"], "cancel");
    assert_eq!(agent.wait(), Some(4), "{}", agent.log.text());
    assert_eq!(agent.responses(), [json!({"action": "cancel"})]);
}

#[test]
fn two_asks_under_one_id_at_once_are_two_asks() {
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, "duplicate-id");
    let asks = up.wait_for_asks(2);
    let of = |question: &str| {
        let is_it = |ask: &&Value| ask["questions"][0]["id"] == question;
        asks.iter().find(is_it).unwrap_or_else(|| panic!("{question}"))
    };
    assert_eq!(up.answer(of("apiKey"), &say("apiKey", "k")).status, 200);
    assert_eq!(up.answer(of("question_0"), &pick("question_0", &["SQLite"])).status, 200);
    assert_eq!(agent.wait(), Some(0), "{}", agent.log.text());
    let accept = |content: Value| json!({"action": "accept", "content": content});
    assert_eq!(agent.responses(), [accept(json!({"apiKey": "k"})), accept(json!({"question_0": "SQLite"}))]);
}

/// The most memory that a process has had, in MB, as far as it has been asked.
#[derive(Default)]
struct Peak(u64);

impl Peak {
    fn look(&mut self, process: u32) {
        let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
        let kilobytes = line.split_whitespace().next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        self.0 = self.0.max(kilobytes / 1_000);
    }
}

#[test]
fn s37_a_fork_bomb_of_asks_is_declined_beyond_the_limits_and_keeps_nobody_from_asking() {
    const MANY: usize = 5_000;
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, &format!("many {MANY}"));
    // Ten a second may come, with a burst before; fifty of a session may be open.
    let open = wait_for("an answer or an ask for each", || {
        let open = up.get("/asks?state=open&limit=500")["asks"].as_array().unwrap().len();
        (agent.responses().len() + open == MANY).then_some(open)
    });
    assert!((10..=50).contains(&open), "{open} are open");
    assert!(agent.responses().iter().all(|answer| *answer == json!({"action": "decline"})));
    let counted = || {
        ["rate", "session_open_asks"]
            .map(|reason| up.metric(&format!("handraise_asks_declined_total{{reason=\"{reason}\"}}")))
            .iter()
            .sum::<u64>()
    };
    wait_for("the count", || (counted() == (MANY - open) as u64).then_some(()));
    // Another agent is asked for beside it, and answered.
    let mut other = Agent::prompt(&home, "single");
    let asked = wait_for("the other's ask", || {
        let asks = up.get("/asks?state=open&limit=500")["asks"].as_array().cloned().unwrap();
        asks.into_iter().find(|ask| ask["questions"][0]["id"] == "question_0")
    });
    assert_eq!(up.answer(&asked, &pick("question_0", &["SQLite"])).status, 200);
    assert_eq!(other.wait(), Some(0), "{}", other.log.text());
    let mut peak = Peak::default();
    peak.look(agent.child.id());
    peak.look(up.child.id());
    assert!(peak.0 > 0 && peak.0 < 200, "{} MB", peak.0);
    terminate(agent.child.id());
    assert_eq!(agent.wait(), Some(4), "{}", agent.log.text());
    assert_eq!(agent.responses().len(), MANY);
}

/// How much the flooding agent says, in megabytes. `FLOOD_MB=1000 cargo test -p handraise-cli --test it flood` lets a
/// gigabyte through, which takes a minute.
const FLOOD_MB: Option<&str> = option_env!("FLOOD_MB");

#[test]
fn a_flood_of_updates_behind_a_slow_inbox_takes_bounded_memory() {
    let megabytes: u32 = FLOOD_MB.unwrap_or("100").parse().unwrap();
    let bound = BOUND + BOUND * megabytes / 100;
    let home = Home::new();
    let up = Up::start(&home);
    let mut agent = Agent::prompt(&home, &format!("flood-bytes {megabytes}"));
    let (mut peak, mut inbox, mut looks) = (Peak::default(), Peak::default(), 0);
    let status = wait_within("the end of the flood", bound, || {
        // The inbox stands still most of the time.
        looks += 1;
        match looks % 20 {
            1 => pause(up.child.id()),
            19 => resume(up.child.id()),
            _ => {}
        }
        peak.look(agent.child.id());
        inbox.look(up.child.id());
        agent.child.try_wait().unwrap()
    });
    resume(up.child.id());
    assert_eq!(status.code(), Some(0), "{}", agent.log.text());
    assert_eq!(agent.text.text(), "thought enough\n");
    println!("{megabytes} MB: handraise agent had {} MB at most, the inbox {} MB", peak.0, inbox.0);
    assert!(peak.0 > 0 && peak.0 < 120, "handraise agent had {} MB", peak.0);
    assert!(inbox.0 > 0 && inbox.0 < 200, "the inbox had {} MB", inbox.0);
    assert_eq!(up.get("/asks")["asks"], json!([]));
}
