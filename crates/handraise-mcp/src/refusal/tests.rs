//! Refusals, as automobile's fixtures have them.

use super::*;

const FLAT: &str = r#"{"content":[{"type":"text","text":"{\"success\":false,\"error\":\"2 devices match\",\"code\":\"ambiguous_device_target\",\"candidates\":[{\"deviceId\":\"emulator-5554\",\"platform\":\"android\"},{\"deviceId\":\"A1B2\",\"platform\":\"ios\"}],\"retryable\":false}"}],"isError":true}"#;

#[test]
fn a_flat_refusal_is_read() {
    let ambiguity = Rules::presets().read(FLAT, |_| false).unwrap();
    let read: Vec<_> = ambiguity.candidates.iter().map(|c| (c.value.as_str(), c.title.as_str())).collect();
    assert_eq!(read, [("emulator-5554", "emulator-5554 (android)"), ("A1B2", "A1B2 (ios)")]);
    assert!(Rules::presets().read(FLAT, |key| key == "deviceId").is_none());
}
