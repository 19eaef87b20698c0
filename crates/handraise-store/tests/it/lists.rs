//! Pages: their order, and that they stay quick however much there is.

use std::fmt::Write as _;

use handraise_api::words::{Outcome, Source};
use handraise_store::{Cursor, DATABASE_FILE, Filter, Page, Store};
use sqlx::{Connection as _, Row as _, SqliteConnection};

use crate::support::{Rig, announce, ask, at, content, ending, instance, rig};

fn ids(page: &Page) -> Vec<&str> {
    page.asks.iter().map(|(ask, _)| ask.id.as_str()).collect()
}

async fn pages(store: &Store, filter: &Filter, limit: u32, open: bool) -> Vec<String> {
    let (mut all, mut after) = (Vec::new(), None::<Cursor>);
    loop {
        let page = if open {
            store.open_asks(filter, after.as_ref(), limit).await.unwrap()
        } else {
            store.settled_asks(filter, after.as_ref(), limit).await.unwrap()
        };
        all.extend(ids(&page).into_iter().map(str::to_owned));
        match page.next {
            Some(next) => after = Some(Cursor::decode(&next.encode()).unwrap()),
            None => return all,
        }
    }
}

/// Twelve asks of a flood, all due before the one ask of somebody else, and two without a deadline.
async fn flooded() -> Rig {
    let rig = rig().await;
    for holder in ["flood", "quiet"] {
        instance(&rig.store, holder).await;
    }
    for n in 0..12u64 {
        announce(&rig.store, at(0), "flood", &ask(&format!("f{n:02}"), Some(1_000 * (n + 1)))).await;
    }
    announce(&rig.store, at(0), "quiet", &ask("q0", Some(900_000))).await;
    announce(&rig.store, at(0), "quiet", &ask("q1", None)).await;
    rig
}

#[tokio::test]
async fn open_asks_come_in_rounds_so_that_a_flood_buries_nobody() {
    let Rig { store, dir: _dir, .. } = flooded().await;
    let expected =
        ["f00", "f01", "f02", "f03", "f04", "q0", "q1", "f05", "f06", "f07", "f08", "f09", "f10", "f11"];
    for limit in [1, 2, 3, 5, 7, 13, 14, 50] {
        assert_eq!(pages(&store, &Filter::default(), limit, true).await, expected, "pages of {limit}");
    }
    assert_eq!(store.count_open().await.unwrap(), 14);
}

#[tokio::test]
async fn a_last_page_that_is_full_has_no_next() {
    let Rig { store, dir: _dir, .. } = flooded().await;
    let page = store.open_asks(&Filter::default(), None, 14).await.unwrap();
    assert_eq!((page.asks.len(), page.next), (14, None));
    let page = store.open_asks(&Filter::default(), None, 13).await.unwrap();
    assert!(page.next.is_some());
}

#[tokio::test]
async fn filters_narrow_open_and_settled_lists() {
    let Rig { store, dir: _dir, .. } = rig().await;
    instance(&store, "i").await;
    for (n, (session, source)) in
        [(Some("one"), Source::Elicitation), (Some("one"), Source::Permission), (None, Source::Script)]
            .into_iter()
            .enumerate()
    {
        for state in ["open", "done"] {
            let mut asked = ask(&format!("{state}{n}"), Some(1_000 * (n as u64 + 1)));
            asked.content = content(session, source, "Pick");
            announce(&store, at(0), "i", &asked).await;
            if state == "done" {
                let now = at(i64::try_from(n).unwrap());
                store.settle(&asked.id, None, &ending(now, Outcome::Timeout, None)).await.unwrap();
            }
        }
    }
    let filter = |session: Option<&str>, source| Filter { session: session.map(Into::into), source };
    for (filter, expected) in [
        (filter(None, None), vec!["0", "1", "2"]),
        (filter(Some("one"), None), vec!["0", "1"]),
        (filter(None, Some(Source::Script)), vec!["2"]),
        (filter(Some("one"), Some(Source::Permission)), vec!["1"]),
        (filter(Some("other"), None), vec![]),
    ] {
        for limit in [1, 50] {
            let open: Vec<String> = expected.iter().map(|n| format!("open{n}")).collect();
            assert_eq!(pages(&store, &filter, limit, true).await, open, "{filter:?} {limit}");
            let done: Vec<String> = expected.iter().rev().map(|n| format!("done{n}")).collect();
            assert_eq!(pages(&store, &filter, limit, false).await, done, "{filter:?} {limit}");
        }
    }
}

#[tokio::test]
async fn a_forged_cursor_is_refused_or_harmless() {
    for text in ["", "1", "1.2", "x.2.a", "-1.2.a", "9223372036854775807.2.a"] {
        assert_eq!(Cursor::decode(text), None, "{text}");
    }
    let Rig { store, dir: _dir, .. } = flooded().await;
    let odd = Cursor::decode("1844674407370955.5.zzz").unwrap();
    let page = store.open_asks(&Filter::default(), Some(&odd), 5).await.unwrap();
    assert!(page.asks.is_empty());
}

/// The plan of every statement that serves a list or a sweep: each goes through the index made for it, and none reads
/// a table from end to end.
#[tokio::test]
async fn list_statements_use_their_indexes() {
    let rig = rig().await;
    let file = rig.dir.path().join(DATABASE_FILE);
    let mut raw = SqliteConnection::connect(&format!("sqlite://{}", file.display())).await.unwrap();
    for (name, sql, indexes) in handraise_store::statements() {
        let mut plan = String::new();
        for row in sqlx::query(sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}")))
            .fetch_all(&mut raw)
            .await
            .unwrap()
        {
            writeln!(plan, "{}", row.get::<String, _>("detail")).unwrap();
        }
        for index in *indexes {
            assert!(plan.contains(index), "{name} does not use {index}:\n{plan}");
        }
        for line in plan.lines() {
            let scans = line.starts_with("SCAN") && !line.contains("INDEX");
            let small =
                ["holders", "h", "taken", "(subquery", "picked", "CONSTANT ROW", "e"].iter().any(|name| {
                    line.split_whitespace()
                        .nth(1)
                        .is_some_and(|table| name.split_whitespace().next() == table.split('-').next())
                });
            assert!(!scans || small, "{name} reads a table from end to end:\n{plan}");
        }
    }
}
