//! The devices that there are; tools may unplug them.

use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

/// Devices, in the order in which they are listed.
pub(crate) struct Devices(Mutex<Vec<String>>);

impl Devices {
    pub(crate) fn new(ids: Vec<String>) -> Self {
        Self(Mutex::new(ids))
    }

    pub(crate) fn present(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn unplug(&self, id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|present| present != id);
    }
}

/// What is told of a device.
pub(crate) fn described(id: &str) -> Value {
    let platform = if id.starts_with("emulator-") { "android" } else { "ios" };
    json!({"deviceId": id, "platform": platform})
}
