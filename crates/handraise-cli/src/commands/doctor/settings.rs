//! The settings: what would refuse a start, and what would do nothing.

use handraise_http::upstream::Target;

use super::{Finding, fine, note, wrong};
use crate::{Context, commands::mcp, confirm, output};

/// What is to be said of them. Values were read before any command runs; here is what commands judge when they start.
pub(super) fn look(context: &Context) -> Vec<Finding> {
    let settings = &context.settings;
    let mut findings: Vec<Finding> =
        settings.warnings.iter().map(|warning| note(format!("settings: {warning}"))).collect();
    let mut judge = |outcome: anyhow::Result<()>| {
        if let Err(error) = outcome {
            findings.push(wrong(format!("settings: {}; handraise mcp does not start", output::told(&error))));
        }
    };
    judge(mcp::keyring(settings).map(drop));
    judge(mcp::rules(&settings.refusals).map(drop));
    let headers = settings.upstream_headers.iter().map(|(name, value)| (name.as_str(), value.expose()));
    judge(Target::new("https://localhost/", headers).map(drop).map_err(Into::into));
    let warnings = confirm::look(settings);
    judge(warnings.as_ref().map(drop).map_err(|error| anyhow::anyhow!("{}", output::told(error))));
    for warning in warnings.unwrap_or_default() {
        // Without a [[confirm]] it changes nothing yet.
        let say = if settings.confirms.is_empty() { note } else { wrong };
        findings.push(say(format!("settings: {warning}")));
    }
    let hosts = settings.listening.allowed_hosts.iter().map(|name| ("mcp.allowed_hosts", name));
    for (key, name) in settings.public_name.iter().map(|name| ("public_name", name)).chain(hosts) {
        if !can_match(name) {
            findings.push(wrong(format!(
                "settings: {key} has {name:?}, by which nobody is ever called; it takes a host name alone, without a \
                 scheme, a port or a path, such as inbox.example.com"
            )));
        }
    }
    if findings.is_empty() {
        findings.push(match &context.config {
            Some(path) => fine(format!("settings: {} and the environment are in order", path.display())),
            None => fine("settings: no config file; the environment is in order"),
        });
    }
    findings
}

/// Whether a request can name us so: the name of its `Host`, without the port and without a dot at the end.
fn can_match(name: &str) -> bool {
    let in_brackets = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    if let Some(address) = in_brackets {
        return address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    !name.is_empty() && name.chars().all(is_plain) && !name.ends_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_that_a_request_can_have() {
        for name in ["inbox.example.com", "INBOX", "10.0.0.1", "[2001:db8::1]", "a_b-c"] {
            assert!(can_match(name), "{name}");
        }
        for name in [
            "",
            "https://inbox.example.com",
            "inbox:7345",
            "inbox/",
            "*.example.com",
            "a.",
            "2001:db8::1",
            "a b",
        ] {
            assert!(!can_match(name), "{name}");
        }
    }
}
