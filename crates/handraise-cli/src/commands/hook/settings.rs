//! The settings that have Claude Code run the hook.

use std::time::Duration;

use serde_json::{Value, json};

/// How much longer than an ask waits the client waits for the hook: the hook ends by itself, in its own words.
const MARGIN: Duration = Duration::from_secs(60);

/// The snippet. `command` is what the client's shell runs; a question waits for `timeout`.
pub(super) fn snippet(command: &str, timeout: Duration) -> Value {
    let seconds = (timeout + MARGIN).as_secs();
    let entry =
        || json!([{"matcher": "", "hooks": [{"type": "command", "command": command, "timeout": seconds}]}]);
    json!({"hooks": {"Elicitation": entry(), "PermissionRequest": entry()}})
}

/// Words as a shell reads them.
pub(super) fn shell(words: &[String]) -> String {
    let is_plain = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '+' | ':' | ',' | '@' | '=')
    };
    let quoted = words.iter().map(|word| {
        if !word.is_empty() && word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_snippet_has_both_hooks_and_waits_a_little_longer_than_they_do() {
        let words = ["/opt/it's here/handraise".to_owned(), "hook".to_owned(), "claude".to_owned()];
        let command = shell(&words);
        assert_eq!(command, r"'/opt/it'\''s here/handraise' hook claude");
        let snippet = snippet(&command, Duration::from_secs(3_300));
        for event in ["Elicitation", "PermissionRequest"] {
            let hook = &snippet["hooks"][event][0]["hooks"][0];
            assert_eq!((&hook["command"], &hook["timeout"]), (&json!(command), &json!(3_360)), "{event}");
        }
    }
}
