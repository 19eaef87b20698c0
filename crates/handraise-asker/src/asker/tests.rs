//! Tests of the desk: when the inbox is looked for, and what is remembered.

use std::sync::atomic::AtomicUsize;

use handraise_api::words::{HolderKind, Who};
use handraise_holder::{InboxAddress, Timing, Token};

use super::*;

/// An inbox that nobody listens at, and how often it was looked for.
fn nobody() -> (Find, Arc<AtomicUsize>) {
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&looks);
    let find = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        Some(HolderSettings {
            inbox: InboxAddress::Socket("/nowhere/inbox.sock".into()),
            token: Token::new("hrh_none"),
            kind: HolderKind::Gateway,
            who: Who::Operator,
            version: "0".to_owned(),
            host: "here".to_owned(),
            clock: SystemClock::shared(),
            timing: Timing::default(),
        })
    };
    (Box::new(find), looks)
}

#[track_caller]
fn wait_for(looks: &AtomicUsize, number: usize) {
    for _ in 0..1_000 {
        if looks.load(Ordering::SeqCst) >= number {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("it was looked for {} times, not {number}", looks.load(Ordering::SeqCst));
}

#[test]
fn a_question_has_an_inbox_looked_for_at_once_and_no_more_than_once_a_second() {
    let (find, looks) = nobody();
    // By itself the thread would not look again within the test.
    let hour = Duration::from_hours(1);
    let asker = Asker::<()>::start_with(find, false, hour, |(), _, _| {}).unwrap();
    let seen = asker.seen();
    wait_for(&looks, 2);
    let since = SystemClock.boot_millis();
    for _ in 0..1_000 {
        assert_eq!(seen(), None);
    }
    wait_for(&looks, 3);
    let seconds = (SystemClock.boot_millis() - since) / HURRIED_EVERY;
    assert!(looks.load(Ordering::SeqCst) as u64 <= 4 + seconds);
}

#[test]
fn whoever_has_no_thread_any_more_has_no_inbox() {
    let (find, looks) = nobody();
    let asker = Asker::<()>::start_with(find, false, Duration::from_hours(1), |(), _, _| {}).unwrap();
    wait_for(&looks, 2);
    let desk = Arc::clone(asker.0.as_ref().unwrap());
    // As where whoever is told panics.
    let stop = Arc::clone(&desk.stop);
    let panicked = thread::spawn(move || {
        let _deaf = Deaf(stop);
        panic!("who is told panics");
    });
    assert!(panicked.join().is_err());
    let before = looks.load(Ordering::SeqCst);
    assert_eq!(asker.seen()(), None);
    assert!(desk.stop.is_deaf.load(Ordering::SeqCst));
    assert_eq!(looks.load(Ordering::SeqCst), before);
}

#[test]
fn what_was_told_of_last_can_still_be_taken_back() {
    let mut asked = Asked::default();
    let key = |number: usize| number.to_string();
    for number in 0..=2 * TOLD {
        asked.ids.insert(key(number), AskId::new(handraise_transport::ids::mint()).unwrap());
        assert!(asked.tell_of(&key(number)).is_some());
        assert!(asked.ids.contains_key(&key(number)), "until it was heard");
    }
    assert_eq!((asked.ids.len(), asked.told.len()), (TOLD, TOLD));
    asked.ids.remove("7");
    assert_eq!(asked.tell_of("7"), None, "it was taken back");
}
