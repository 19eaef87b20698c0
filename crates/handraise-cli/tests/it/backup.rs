//! `handraise backup`, beside an inbox that runs, and what is found when it is restored.

use std::{fs::Permissions, os::unix::fs::PermissionsExt as _, process::Stdio};

use serde_json::json;

use crate::support::{Ending, Home, Up, call, pick, stderr};

#[test]
fn a_backup_of_a_running_inbox_is_restored_with_everything() {
    let home = Home::new();
    let up = Up::start(&home);
    let ask = |question: &str| {
        let mut command = home.handraise(&["ask", question, "--choice", "yes", "--choice", "no"]);
        Ending(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let _first = ask("Deploy?");
    let settled = up.wait_for_ask();
    assert_eq!(up.answer(&settled, &pick("answer", &["yes"])).status, 200);
    let _second = ask("And now?");
    let open = up.wait_for_ask();

    let file = home.path().join("copy.db");
    let shown = file.display().to_string();
    let said = home.stdout(&["backup", &shown]);
    assert!(
        said.starts_with(&format!("{shown}: 2 asks, 0 sessions, ")) && said.ends_with("checked\n"),
        "{said}"
    );
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let again = home.run(&["backup", &shown]);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("is there already; name another file, or replace it with --force"));
    // After the copy: no part of it.
    assert_eq!(up.answer(&open, &pick("answer", &["no"])).status, 200);

    let restored = Home::new();
    std::fs::DirBuilder::new().create(restored.data_dir()).unwrap();
    std::fs::set_permissions(restored.data_dir(), Permissions::from_mode(0o700)).unwrap();
    std::fs::copy(&file, restored.data_dir().join("handraise.db")).unwrap();
    let other = Up::start(&restored);
    let get = |path: &str| call(&other.url, "GET", &format!("/api/v1{path}"), Some(&up.operator), None);
    let found = get(&format!("/asks/{}", settled["id"].as_str().unwrap()));
    assert_eq!(found.status, 200, "tokens are in it: {}", found.body);
    assert_eq!(found.body["settlement"]["outcome"], "accept");
    assert_eq!(found.body["settlement"]["answers"][0]["selected_options"], json!(["yes"]));
    let found = get(&format!("/asks/{}", open["id"].as_str().unwrap()));
    assert_eq!((&found.body["state"], &found.body["holder_connected"]), (&json!("open"), &json!(false)));
    assert_eq!(home.run(&["backup", "--force", &shown]).status.code(), Some(0));
}

#[test]
fn what_cannot_be_backed_up_is_said_and_leaves_nothing() {
    let home = Home::new();
    let complaint = |file: &str| {
        let output = home.run(&["backup", file]);
        assert_eq!(output.status.code(), Some(1), "{file}");
        stderr(&output)
    };
    let none = complaint("copy.db");
    assert!(none.contains("there is no database in") && none.contains("--data-dir"), "{none}");
    home.token("viewer");
    let own = home.data_dir().join("handraise.db-wal").display().to_string();
    assert!(complaint(&own).contains("is in the inbox's own data directory"));
    assert!(complaint(&home.work().display().to_string()).contains("is a folder"));
    assert!(complaint("nowhere/copy.db").contains("the folder of nowhere/copy.db cannot be looked into"));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let unsaid = home.handraise(&["backup", "whole.db"]).stdout(full).output().unwrap();
    assert_eq!(unsaid.status.code(), Some(1));
    assert!(stderr(&unsaid).contains("whole.db is there and whole: stdout cannot be written"));
    std::fs::remove_file(home.work().join("whole.db")).unwrap();
    std::fs::write(home.data_dir().join("handraise.db"), "no database").unwrap();
    assert!(complaint("copy.db").contains("is damaged or no handraise database"));
    assert_eq!(home.work().read_dir().unwrap().count(), 0, "nothing is left");
}
