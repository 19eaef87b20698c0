//! Settings, as the fleet that uses them reads them.

use std::time::Duration;

use super::super::*;

const SHORT: &str = "fifteen-letters";
const WEAK: &str = "sixteen-letters!";
const GOOD: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn a_mode_is_read_or_fails_closed() {
    for (value, expected) in [
        (None, Mode::AskUser),
        (Some("ask-user"), Mode::AskUser),
        (Some(" Ask-User\n"), Mode::AskUser),
        (Some("auto"), Mode::Auto),
        (Some("AUTO"), Mode::Auto),
        (Some("refuse"), Mode::Refuse),
    ] {
        assert_eq!(mode(value), (expected, None), "{value:?}");
    }
    for value in ["", "  ", "askuser", "ask_user", "yes", "on", "autoo", "ask-user,auto"] {
        let (read, warning) = mode(Some(value));
        assert_eq!((read, warning), (Mode::Refuse, Some(Warning::Mode(value.into()))));
    }
}

#[test]
fn elicitation_is_off_or_on() {
    for (value, expected) in [(None, true), (Some("on"), true), (Some(" OFF "), false), (Some("off"), false)]
    {
        assert_eq!(elicitation(value), (expected, None), "{value:?}");
    }
    for value in ["", "false", "0", "no", "offf"] {
        assert_eq!(elicitation(Some(value)), (true, Some(Warning::Elicitation(value.into()))));
    }
}

#[test]
fn a_lifetime_is_digits_or_there_are_no_tokens() {
    let of = |seconds| (Ttl::Of(Duration::from_secs(seconds)), None);
    assert_eq!(ttl(None), of(600));
    assert_eq!(ttl(Some("1")), of(1));
    assert_eq!(ttl(Some("86400")), of(86_400));
    assert_eq!(ttl(Some("99999999999999999999999")), of(u64::MAX));
    for value in ["", "0", "007", "-1", "+5", "1.5", "1e3", " 600", "600 ", "10m", "٣", "6_0"] {
        assert_eq!(ttl(Some(value)), (Ttl::NoTokens, Some(Warning::Ttl(value.into()))), "{value:?}");
    }
}

fn source(own: Option<&str>, host: Option<&str>, data_dir: Option<&str>) -> (String, Option<Warning>) {
    let (source, warning) = key_source(Secrets { own, host, data_dir });
    let source = match source {
        KeySource::Shared(key) => {
            // Which secret it is shows in what it signs.
            let claims = Claims {
                tool: "t".into(),
                account: None,
                target: String::new(),
                revision: None,
                hash: String::new(),
                expires_ms: 1,
                nonce: [0; 16],
            };
            let token = sign(&claims, &key);
            let known = [GOOD, WEAK, "the-host-secret-of-32-characters"];
            let of = known.iter().find(|secret| sign(&claims, &TokenKey::of_secret(secret)) == token);
            format!("shared {}", of.unwrap())
        }
        KeySource::Random => "random".into(),
        KeySource::NoTokens => "none".into(),
    };
    (source, warning)
}

#[test]
fn the_own_secret_comes_first_then_the_hosts_then_chance() {
    let host = "the-host-secret-of-32-characters";
    let read = |own, host, data_dir| source(own, host, data_dir).0;
    assert_eq!(read(Some(GOOD), Some(host), Some("/data")), format!("shared {GOOD}"));
    assert_eq!(read(None, Some(host), Some("/data")), format!("shared {host}"));
    assert_eq!(source(Some(&format!("  {GOOD}\n")), None, None).0, format!("shared {GOOD}"));
    assert_eq!(read(None, None, Some("/data")), "random");
    for data_dir in [None, Some("data"), Some("./data"), Some(""), Some("${HOME}/data"), Some("null")] {
        assert_eq!(read(None, Some(host), data_dir), "random", "{data_dir:?}");
        assert_eq!(shared_folder(data_dir), None, "{data_dir:?}");
    }
    // Whoever shares a secret shares the folder, however the variable was written.
    assert_eq!(shared_folder(Some(" /data\n")), Some("/data".into()));
    for unset in ["", "  ", "null", "undefined", "${MCP_CONFIRM_SECRET}", " ${A_VARIABLE_OF_THE_HOST:-} "] {
        assert_eq!(read(Some(unset), Some(host), Some("/data")), format!("shared {host}"), "{unset}");
        assert_eq!(read(None, Some(unset), Some("/data")), "random", "{unset}");
    }
}

#[test]
fn a_short_secret_gives_no_tokens_and_a_weak_one_a_warning() {
    let (none, warning) = source(Some(SHORT), Some(GOOD), Some("/data"));
    assert_eq!(none, "none", "a short secret does not make way for another");
    let warning = warning.unwrap().to_string();
    assert_eq!(
        warning,
        "the secret MCP_CONFIRM_SECRET has 15 characters: 16 are the fewest; no confirm tokens are given"
    );
    let (shared, warning) = source(None, Some(WEAK), Some("/data"));
    assert_eq!(shared, format!("shared {WEAK}"));
    assert_eq!(
        warning.unwrap().to_string(),
        "the secret MCP_HOST_CONFIRM_SECRET has 16 characters: give it 32 or more"
    );
    assert_eq!(source(Some(GOOD), None, None).1, None);
}

#[test]
fn warnings_show_values_safely_and_never_secrets() {
    let (_, warning) = mode(Some(&format!("\u{1b}[2J{}", "x".repeat(500))));
    let shown = warning.unwrap().to_string();
    assert!(shown.contains("\\u{1b}[2Jxxx") && shown.len() < 250, "{shown}");
    for secret in [SHORT, WEAK] {
        let warning = source(Some(secret), None, None).1.unwrap();
        assert!(!format!("{warning} {warning:?}").contains(secret));
    }
}
