//! Ids of our own: nobody can guess them, and nobody else's look like them.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Derives ids from a connection's seed.
pub(super) struct PrivateIds {
    seed: [u8; 32],
    drawn: u64,
    ask_prefix: String,
    request_prefix: String,
}

/// The seed stays out of logs.
impl std::fmt::Debug for PrivateIds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PrivateIds").field("drawn", &self.drawn).finish_non_exhaustive()
    }
}

impl PrivateIds {
    /// Each connection has prefixes of its own, one for what the client sees and one for what the upstream sees: neither
    /// learns the other, and two gateways in a row do not take each other's ids for their own.
    pub(super) fn new(seed: [u8; 32]) -> Self {
        let mut ids = Self { seed, drawn: 0, ask_prefix: String::new(), request_prefix: String::new() };
        ids.ask_prefix = format!("hr-ask-{}-", &hex(ids.draw())[..16]);
        ids.request_prefix = format!("hr-run-{}-", &hex(ids.draw())[..16]);
        ids
    }

    /// The id of a question to the client: the private prefix, then 128 bits.
    pub(super) fn ask(&mut self) -> String {
        let id = hex(self.draw());
        format!("{}{id}", self.ask_prefix)
    }

    /// The key of a question for the inbox: 128 bits, in no name space that a client or an upstream can speak in.
    pub(super) fn inbox(&mut self) -> String {
        format!("hr-inbox-{}", hex(self.draw()))
    }

    /// The id of a request of ours to the upstream.
    pub(super) fn request(&mut self) -> String {
        self.drawn += 1;
        format!("{}{}", self.request_prefix, self.drawn)
    }

    /// Sixteen bytes for a state.
    pub(super) fn nonce(&mut self) -> [u8; 16] {
        self.draw()
    }

    /// Whether an id is in the name space of our questions.
    pub(super) fn is_ask(&self, id: &str) -> bool {
        id.starts_with(&self.ask_prefix)
    }

    /// Whether an id is in the name space of our requests.
    pub(super) fn is_request(&self, id: &str) -> bool {
        id.starts_with(&self.request_prefix)
    }

    /// Whether an id is in one of our name spaces.
    pub(super) fn is_private(&self, id: &str) -> bool {
        self.is_ask(id) || self.is_request(id)
    }

    /// The next 128 bits. The secret has a fixed length and the digest is cut, so nothing can be appended to it.
    fn draw(&mut self) -> [u8; 16] {
        self.drawn += 1;
        let digest = Sha256::new().chain_update(self.seed).chain_update(self.drawn.to_be_bytes()).finalize();
        std::array::from_fn(|index| digest[index])
    }
}

fn hex(bytes: [u8; 16]) -> String {
    bytes.iter().fold(String::with_capacity(32), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s27_ids_are_unguessable_and_apart() {
        let (mut one, mut other) = (PrivateIds::new([1; 32]), PrivateIds::new([2; 32]));
        let (first, second) = (one.ask(), one.ask());
        assert_ne!(first, second);
        assert_eq!(first.len(), "hr-ask-".len() + 16 + 1 + 32);
        assert!(one.is_ask(&first) && one.is_ask(&second));
        assert!(!other.is_ask(&first));
        assert!(!one.is_ask(&other.ask()));
        let request = one.request();
        assert!(one.is_request(&request) && !one.is_ask(&request) && !other.is_request(&request));
        // What the upstream sees does not tell what the client sees.
        assert_ne!(&one.ask_prefix[7..], &one.request_prefix[7..]);
        assert!(!format!("{one:?}").contains("1, 1"));
    }
}
