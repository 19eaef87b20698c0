//! What is left when the process is killed: whatever was acknowledged, and nothing in halves.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use handraise_api::words::Source;
use handraise_store::{Announced, DATABASE_FILE, Store, Verdict};

use crate::support::{Rig, announce, ask, at, content, instance, rig, submission};

const HOLDERS: usize = 6;
const ASKS: usize = 60;
/// After how many acknowledged asks the process is killed.
const KILLS: [usize; 4] = [1, 40, 150, 320];

/// What its sender was told, in the order of telling.
#[derive(Debug, Clone, Default)]
struct Acknowledged {
    opened: Vec<String>,
    submitted: Vec<String>,
    settled: Vec<String>,
}

/// Opens, answers and settles asks of one holder.
async fn live(store: Store, holder: usize, acknowledged: Arc<Mutex<Acknowledged>>) {
    let owner = format!("i{holder}");
    for n in 0..ASKS {
        let id = format!("{holder}-{n}");
        let mut asked = ask(&id, None);
        asked.content = content(Some(&format!("session-{holder}")), Source::Elicitation, "Pick");
        let opened = announce(&store, at(1), &owner, &asked).await;
        assert!(matches!(opened, Announced::Opened { .. }), "{opened:?}");
        acknowledged.lock().unwrap().opened.push(id.clone());
        let new = submission(&format!("s-{id}"), &id);
        assert_eq!(store.submit(at(2), std::slice::from_ref(&new)).await.unwrap(), [true]);
        acknowledged.lock().unwrap().submitted.push(new.id.clone());
        let ending = new.delivered(at(3).wall);
        let replied = store.reply(at(3), &new.id, Verdict::Delivered, Some(&ending)).await.unwrap().unwrap();
        assert!(replied.settled_now);
        acknowledged.lock().unwrap().settled.push(id);
    }
}

/// What a killed process leaves: the files as they are at this moment, in the middle of whatever is written.
fn kill(from: &Path, to: &Path) {
    for suffix in ["", "-wal"] {
        let name = format!("{DATABASE_FILE}{suffix}");
        std::fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_moment_loses_nothing_acknowledged_and_leaves_nothing_in_halves() {
    let Rig { store, dir, .. } = rig().await;
    let acknowledged = Arc::new(Mutex::new(Acknowledged::default()));
    for holder in 0..HOLDERS {
        instance(&store, &format!("i{holder}")).await;
    }
    let lives: Vec<_> = (0..HOLDERS)
        .map(|holder| tokio::spawn(live(store.clone(), holder, Arc::clone(&acknowledged))))
        .collect();
    let mut left = Vec::new();
    for kills in KILLS {
        while acknowledged.lock().unwrap().opened.len() < kills {
            assert!(!lives.iter().all(tokio::task::JoinHandle::is_finished), "too few lives");
            tokio::task::yield_now().await;
        }
        let told = acknowledged.lock().unwrap().clone();
        let image = tempfile::tempdir().unwrap();
        kill(dir.path(), image.path());
        left.push((told, image));
    }
    for life in lives {
        life.await.unwrap();
    }
    for (told, image) in left {
        let (store, _) = Store::open(image.path(), "boot", at(10)).await.unwrap();
        for id in &told.opened {
            assert!(store.ask(id).await.unwrap().is_some(), "{id} was acknowledged");
        }
        for id in &told.submitted {
            assert!(store.submission(id).await.unwrap().is_some(), "{id} was acknowledged");
        }
        for id in &told.settled {
            let (ask, _) = store.ask(id).await.unwrap().unwrap();
            let how = ask.settlement.unwrap();
            assert_eq!(how.submission_id, Some(format!("s-{id}")));
        }
        for holder in 0..HOLDERS {
            let session = format!("session-{holder}");
            let entries = store.messages(&session, 0, 1_000).await.unwrap();
            let mut asks = 0;
            let mut open = 0;
            for n in 0..ASKS {
                let Some((ask, _)) = store.ask(&format!("{holder}-{n}")).await.unwrap() else { break };
                asks += 1;
                open += u32::from(ask.settlement.is_none());
            }
            assert_eq!(entries.len(), asks, "an ask and its entry are there, or neither is");
            let waiting = store.session(&session).await.unwrap().map_or(0, |(session, _)| session.waiting);
            assert_eq!(waiting, open);
        }
        store.close().await;
    }
}
