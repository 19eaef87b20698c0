//! A rule for tests, with every member of the table.

use super::RuleSource;

/// The preset, as a table would have it.
pub(crate) fn source() -> RuleSource {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    RuleSource {
        name: "ambiguous_device_target".into(),
        code: "ambiguous_device_target".into(),
        code_at: texts(&["/code", "/error/code", "/failure/code"]),
        candidates_at: texts(&["/candidates", "/error/candidates", "/devices", "/error/devices"]),
        value: "/deviceId".into(),
        title: "{deviceId} ({platform})".into(),
        argument: "deviceId".into(),
        message: "Which device should {tool} use?".into(),
        candidates_tool: Some(("listDevices".into(), texts(&["/devices"]))),
    }
}
