//! `handraise inbox audit`.

use std::process::ExitCode;

use handraise_api::audit::{AuditEntry, AuditList};
use serde_json::Value;

use super::{Audit, client::Client, list::columns, words};
use crate::{Exit, output};

pub(super) async fn run(client: &Client, audit: &Audit) -> Exit {
    let before = audit.before.map(|before| format!("&before={before}")).unwrap_or_default();
    let answer: Value = client.get(&format!("/api/v1/audit?limit={}{before}", audit.limit)).await?;
    if audit.json {
        output::print(&serde_json::to_string_pretty(&answer)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let AuditList { entries, next_before } = serde_json::from_value(answer)?;
    for line in columns(&entries.iter().map(row).collect::<Vec<_>>()) {
        output::print(&line)?;
    }
    match next_before {
        _ if entries.is_empty() && audit.before.is_none() => output::complain("Nothing has been refused."),
        None if entries.is_empty() => output::complain("There is nothing earlier."),
        None => {}
        Some(before) => output::complain(&format!("There may be earlier ones; see --before {before}.")),
    }
    Ok(ExitCode::SUCCESS)
}

/// When, what, whose token it came with, and from which holder about what.
fn row(entry: &AuditEntry) -> [String; 4] {
    let said = |word, id: &Option<String>| id.as_deref().map(|id| format!("{word} {}", words::name(id)));
    let rest: Vec<String> =
        [said("holder", &entry.instance), said("about", &entry.about)].into_iter().flatten().collect();
    let at = entry.at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    [at, words::name(&entry.what), words::name(&entry.token_name), rest.join(", ")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s9_s42_a_line_says_when_what_whose_and_about_what_and_moves_no_terminal() {
        let entry = AuditEntry {
            id: 7,
            at: "2026-03-01T09:30:15.25Z".parse().unwrap(),
            what: "not_owner".into(),
            token: "t1".into(),
            token_name: "lap\u{1b}[2Jtop".into(),
            instance: Some("i1".into()),
            about: Some("x".repeat(100)),
        };
        let bare = AuditEntry { what: "answerers".into(), instance: None, about: None, ..entry.clone() };
        let lines = columns(&[row(&entry), row(&bare)]);
        let start = "2026-03-01T09:30:15Z  not_owner  lap\\u{1b}[2Jtop  holder i1, about xxx";
        assert!(lines[0].starts_with(start), "{}", lines[0]);
        assert!(lines[0].ends_with("x … 20 more characters"), "{}", lines[0]);
        assert_eq!(lines[1], "2026-03-01T09:30:15Z  answerers  lap\\u{1b}[2Jtop");
    }
}
