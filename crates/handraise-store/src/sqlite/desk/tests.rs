//! Whose turn it is, with a number for the connection.

use super::*;

type Numbered = Desk<u8, u8>;

const CONNECTION: u8 = 7;

/// Somebody who wants something written under that name; what they are told is for nobody.
async fn wanted(places: &Places, name: &'static str, is_ahead: bool) -> Wanted {
    let statement = Statement::new(&["SELECT $1"]).bind(name);
    let statement = if is_ahead { statement.ahead() } else { statement };
    Wanted { statement, done: oneshot::channel().0, place: places.take().await.unwrap() }
}

/// What comes next, by name.
fn next(desk: &Numbered) -> Vec<String> {
    match desk.next(CONNECTION) {
        Next::Nothing => Vec::new(),
        Next::Lend(..) => vec!["lend".to_owned()],
        Next::Group(_, group) => {
            group.iter().map(|wanted| format!("{:?}", wanted.statement.values)).collect()
        }
    }
}

fn named(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("[Text({name:?})]")).collect()
}

#[tokio::test]
async fn who_is_waited_for_goes_ahead_and_then_it_is_the_others_turn() {
    let (desk, places) = (Numbered::new(CONNECTION), Places::new());
    assert_eq!(desk.want(wanted(&places, "a", false).await).unwrap(), Some(CONNECTION));
    for (name, is_ahead) in [("b", false), ("first", true), ("second", true)] {
        assert_eq!(desk.want(wanted(&places, name, is_ahead).await).unwrap(), None);
    }
    assert_eq!(next(&desk), named(&["first", "second"]));
    assert_eq!(desk.want(wanted(&places, "third", true).await).unwrap(), None);
    assert_eq!(next(&desk), named(&["a", "b"]));
    assert_eq!(next(&desk), named(&["third"]));
    assert!(next(&desk).is_empty());
    assert_eq!(
        desk.want(wanted(&places, "c", false).await).unwrap(),
        Some(CONNECTION),
        "it lies there again"
    );
}

#[tokio::test]
async fn a_turn_is_forgotten_when_nobody_waited_for_it() {
    let (desk, places) = (Numbered::new(CONNECTION), Places::new());
    assert_eq!(desk.want(wanted(&places, "first", true).await).unwrap(), Some(CONNECTION));
    assert_eq!(next(&desk), named(&["first"]));
    assert_eq!(desk.lay_back(CONNECTION), None);
    assert_eq!(desk.want(wanted(&places, "a", false).await).unwrap(), Some(CONNECTION));
    assert_eq!(desk.want(wanted(&places, "second", true).await).unwrap(), None);
    assert_eq!(next(&desk), named(&["second"]), "who is waited for goes ahead");
}

#[tokio::test]
async fn whoever_asks_for_the_connection_gets_it_in_turn() {
    let (desk, places) = (Numbered::new(CONNECTION), Places::new());
    assert_eq!(desk.ask_for(oneshot::channel().0).unwrap(), Some(CONNECTION));
    assert_eq!(desk.want(wanted(&places, "a", false).await).unwrap(), None);
    assert_eq!(desk.ask_for(oneshot::channel().0).unwrap(), None);
    assert_eq!(desk.want(wanted(&places, "b", false).await).unwrap(), None);
    assert_eq!(desk.lay_back(CONNECTION), Some(CONNECTION), "somebody waits for it");
    assert_eq!(next(&desk), named(&["a"]));
    assert_eq!(next(&desk), ["lend"]);
    assert_eq!(next(&desk), named(&["b"]));
    assert!(next(&desk).is_empty());
}

#[tokio::test]
async fn what_was_put_off_comes_first_in_its_order() {
    let (desk, places) = (Numbered::new(CONNECTION), Places::new());
    for name in ["a", "b"] {
        desk.want(wanted(&places, name, false).await).unwrap();
    }
    let Next::Group(_, group) = desk.next(CONNECTION) else { panic!("two wait") };
    desk.want(wanted(&places, "c", true).await).unwrap();
    desk.put_off(group);
    assert_eq!(next(&desk), named(&["a", "b", "c"]));
}

#[tokio::test]
async fn a_group_and_those_who_wait_are_bounded() {
    let (desk, places) = (Numbered::new(CONNECTION), Places::new());
    for _ in 0..MOST_WAITING {
        desk.want(wanted(&places, "a", false).await).unwrap();
    }
    let one_more = tokio::time::timeout(std::time::Duration::from_millis(1), places.take()).await;
    assert!(one_more.is_err(), "it waits for a place");
    assert_eq!(next(&desk).len(), MOST_TOGETHER);
    assert!(places.take().await.is_some());
}

#[tokio::test]
async fn of_a_closed_desk_nobody_gets_anything_and_who_waits_hears_of_it() {
    let (desk, places) = (Numbered::new(CONNECTION), Places::new());
    let (done, outcome) = oneshot::channel();
    let statement = Statement::new(&["SELECT 1"]);
    desk.want(Wanted { statement, done, place: places.take().await.unwrap() }).unwrap();
    desk.close();
    assert!(outcome.await.is_err());
    assert!(desk.want(wanted(&places, "a", true).await).is_err());
    assert!(desk.ask_for(oneshot::channel().0).is_err());
}
