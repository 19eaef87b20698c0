//! Marks, keys in pairs, and the machine's zone.

use super::*;

/// Permissions, with the first `answered` of them looked at and answered.
fn permissions(count: usize, answered: usize) -> Rig {
    let mut asks = several(count);
    for ask in &mut asks {
        ask.content.source = Source::Permission;
    }
    let mut rig = Rig::new(asks);
    for _ in 0..answered {
        rig.press(&Key::Enter);
        rig.wait(2_000);
        rig.keys("1uj");
    }
    for _ in 0..count {
        rig.keys("k");
    }
    rig
}

fn together(rig: &mut Rig) -> Vec<Vec<String>> {
    rig.submit();
    let effects = std::mem::take(&mut rig.effects);
    let sent = effects.into_iter().filter_map(|effect| match effect {
        Effect::SendTogether(requests) => Some(requests.into_iter().map(|(id, _)| id).collect()),
        Effect::Quit | Effect::LoadMore(_) | Effect::Seen { .. } | Effect::Send { .. } => None,
    });
    sent.collect()
}

#[test]
fn s44_what_is_marked_is_answered_together() {
    let mut rig = permissions(3, 2);
    rig.keys("xjx");
    rig.shows("2 marked · Ctrl-S answers them together, all or none");
    assert_eq!(together(&mut rig), [["ask-0000", "ask-0001"]]);
    rig.shows("Nothing is settled yet.");
    rig.picker.answered_together(Err("ask ask-0001 had ended".to_owned()));
    rig.shows("had ended. None counts as answered");
    rig.wait(1_000);
    assert_eq!(together(&mut rig), [["ask-0000", "ask-0001"]], "they are still marked");
    let asks = ["ask-0000", "ask-0001"]
        .map(|id| sample::settled(Ask { id: id.into(), ..sample::single(Source::Permission) }));
    rig.picker.answered_together(Ok(asks.into()));
    rig.shows("1 open");
    rig.shows("2 were answered together");
    rig.wait(1_000);
    assert!(together(&mut rig).is_empty());
}

#[test]
fn s44_only_what_was_answered_on_its_card_is_marked_and_no_form_is() {
    let mut rig = permissions(2, 1);
    rig.keys("jx");
    rig.shows("Choose on its card first, then mark it.");
    rig.keys("kxx");
    assert!(rig.picker.marked.is_empty(), "a second x takes the mark back");
    let mut rig = Rig::open(sample::single(Source::Script));
    rig.keys("1x");
    rig.shows("Only confirms and permissions are answered together.");
    assert!(rig.picker.marked.is_empty());
}

#[test]
fn s40_a_list_that_has_just_appeared_sends_nothing() {
    let mut rig = permissions(1, 1);
    rig.keys("x");
    rig.press(&Key::Enter);
    rig.keys("u");
    rig.wait(100);
    rig.press_now(&Key::Ctrl('s'));
    assert!(rig.effects.iter().all(|effect| !matches!(effect, Effect::SendTogether(_))));
    assert_eq!(together(&mut rig), [["ask-0000"]]);
}

#[test]
fn g_and_i_lead_back_to_the_list_and_g_and_s_skip_nothing() {
    let mut rig = Rig::open(sample::ask());
    rig.keys("gs");
    rig.shows("Sessions and clients are on the page.");
    rig.hides("Why?");
    rig.keys("gi");
    rig.shows("1 open");
    rig.press(&Key::Enter);
    rig.keys("g");
    rig.wait(2_000);
    rig.keys("s");
    rig.shows("Why? (optional");
}

#[test]
fn times_are_those_of_the_machine_s_zone() {
    let mut rig = Rig::open(sample::ask());
    rig.zone = TimeZone::fixed(jiff::tz::offset(-5));
    rig.picker.changed(&sample::settled(sample::ask()));
    rig.shows("at 09:00:00 -05");
}
