//! The keys that states are sealed with.

use std::fmt;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit as _};
use sha2::Sha256;

use super::Purpose;

/// A MAC with its key in place.
pub(super) type Keyed = Hmac<Sha256>;

/// The fewest characters of a secret.
pub const MIN_SECRET_CHARACTERS: usize = 32;

/// The most keys of a ring.
const MAX_KEYS: usize = 16;

/// A key's id: that many bytes, as base64url of that length.
pub(super) const ID_BYTES: usize = 6;
pub(super) const ID_LENGTH: usize = 8;

/// Keeps these keys apart from whatever else is derived from the same secret.
const SALT: &[u8] = b"handraise state v1";

/// One key or several: the first signs, all verify.
#[derive(Clone)]
pub struct Keyring {
    signing: Key,
    others: Vec<Key>,
}

/// One secret, and what is derived from it once it is needed: most connections never seal anything.
#[derive(Clone)]
pub(super) struct Key {
    secret: Box<[u8]>,
    derived: OnceLock<Derived>,
}

/// The keys derived from one secret, one for each purpose.
#[derive(Clone)]
struct Derived {
    id: String,
    macs: [Keyed; Purpose::ALL.len()],
}

/// Why a text is no keyring. Names a key by its place, never by its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// Nothing at all, as in a variable that was never filled.
    #[error(
        "it is empty: give keys of at least 32 characters, or leave it out altogether to have random ones"
    )]
    Nothing,
    /// Nothing between two commas.
    #[error("key {place} is empty: give keys of at least 32 characters, separated by single commas")]
    Empty {
        /// Which key, counted from 1.
        place: usize,
    },
    /// The word for nothing of some language: a variable that was never set.
    #[error("key {place} is the word \"{word}\": the variable that it comes from is not set")]
    Word {
        /// Which key, counted from 1.
        place: usize,
        /// The word.
        word: &'static str,
    },
    /// `${…}`.
    #[error("key {place} holds a ${{…}} that nothing has expanded")]
    Unexpanded {
        /// Which key, counted from 1.
        place: usize,
    },
    /// Too few characters.
    #[error("key {place} has {characters} characters: 32 are the fewest")]
    Short {
        /// Which key, counted from 1.
        place: usize,
        /// How many characters it has.
        characters: usize,
    },
    /// Too many keys.
    #[error("{count} keys are too many: 16 are the most")]
    Many {
        /// How many there are.
        count: usize,
    },
}

impl Keyring {
    /// Reads `key[,key…]`; each key is trimmed.
    pub fn parse(text: &str) -> Result<Self, KeyringError> {
        if text.trim().is_empty() {
            return Err(KeyringError::Nothing);
        }
        let count = text.split(',').count();
        if count > MAX_KEYS {
            return Err(KeyringError::Many { count });
        }
        let mut keys = text.split(',').enumerate().map(|(index, member)| parse_key(member.trim(), index + 1));
        let signing = keys.next().unwrap_or(Err(KeyringError::Empty { place: 1 }))?;
        let others = keys.collect::<Result<_, _>>()?;
        Ok(Self { signing, others })
    }

    /// A ring of one key, from 256 random bits.
    pub fn single(secret: &[u8; 32]) -> Self {
        Self { signing: Key::new(secret), others: Vec::new() }
    }

    pub(super) fn signing(&self) -> &Key {
        &self.signing
    }

    pub(super) fn named(&self, id: &str) -> Option<&Key> {
        std::iter::once(&self.signing).chain(&self.others).find(|key| key.id() == id)
    }
}

/// Keys stay out of logs.
impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyring({} keys)", 1 + self.others.len())
    }
}

fn parse_key(member: &str, place: usize) -> Result<Key, KeyringError> {
    if member.is_empty() {
        return Err(KeyringError::Empty { place });
    }
    if let Some(word) = ["null", "undefined"].into_iter().find(|word| member.eq_ignore_ascii_case(word)) {
        return Err(KeyringError::Word { place, word });
    }
    if member.split_once("${").is_some_and(|(_, rest)| rest.contains('}')) {
        return Err(KeyringError::Unexpanded { place });
    }
    let characters = member.chars().count();
    if characters < MIN_SECRET_CHARACTERS {
        return Err(KeyringError::Short { place, characters });
    }
    Ok(Key::new(member.as_bytes()))
}

impl Key {
    fn new(secret: &[u8]) -> Self {
        Self { secret: secret.into(), derived: OnceLock::new() }
    }

    fn derived(&self) -> &Derived {
        self.derived.get_or_init(|| Derived::from_secret(&self.secret))
    }

    pub(super) fn id(&self) -> &str {
        &self.derived().id
    }

    pub(super) fn mac(&self, purpose: Purpose) -> &Keyed {
        &self.derived().macs[purpose as usize]
    }
}

impl Derived {
    fn from_secret(secret: &[u8]) -> Self {
        let hkdf = Hkdf::<Sha256>::new(Some(SALT), secret);
        let mut id = [0; ID_BYTES];
        // HKDF fails for outputs over 8 KiB alone.
        let _ = hkdf.expand(b"key id", &mut id);
        let macs = Purpose::ALL.map(|purpose| {
            let mut key = [0; 64];
            let _ = hkdf.expand_multi_info(&[b"mac ", purpose.name().as_bytes()], &mut key);
            Keyed::new(&key.into())
        });
        Self { id: URL_SAFE_NO_PAD.encode(id), macs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef";

    fn complaint(text: &str) -> String {
        Keyring::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_key_has_32_characters_or_more() {
        assert!(Keyring::parse(KEY).is_ok());
        assert!(Keyring::parse(&format!("{KEY},{KEY}x , {KEY}y")).is_ok());
        assert!(Keyring::parse(&"é".repeat(32)).is_ok());
        assert_eq!(complaint(&KEY[1..]), "key 1 has 31 characters: 32 are the fewest");
        assert_eq!(
            complaint(&format!("{KEY},{}", "é".repeat(31))),
            "key 2 has 31 characters: 32 are the fewest"
        );
        assert_eq!(complaint(&format!("  {}  ", &KEY[2..])), "key 1 has 30 characters: 32 are the fewest");
    }

    #[test]
    fn an_empty_member_is_refused() {
        for text in ["", " \t", "\n"] {
            let says = "give keys of at least 32 characters, or leave it out altogether to have random ones";
            assert_eq!(complaint(text), format!("it is empty: {says}"));
        }
        for (text, place) in [(",", 1), (&*format!("{KEY},"), 2), (&*format!("{KEY},,{KEY}"), 2)] {
            let says = "is empty: give keys of at least 32 characters, separated by single commas";
            assert_eq!(complaint(text), format!("key {place} {says}"));
        }
    }

    #[test]
    fn a_variable_that_was_never_set_is_refused() {
        for word in ["null", "undefined", " NULL ", "Undefined"] {
            let lower = word.trim().to_lowercase();
            assert_eq!(
                complaint(&format!("{KEY},{word}")),
                format!("key 2 is the word \"{lower}\": the variable that it comes from is not set")
            );
        }
        for text in
            ["${HANDRAISE_STATE_SECRET}", "${THE_SECRET_OF_THE_VAULT_OF_THE_TEAM:-}", &format!("{KEY}${{X}}")]
        {
            assert_eq!(complaint(text), "key 1 holds a ${…} that nothing has expanded");
        }
        assert!(Keyring::parse(&format!("{KEY}$")).is_ok());
        assert!(Keyring::parse(&format!("{KEY}${{")).is_ok());
    }

    #[test]
    fn more_than_16_keys_are_refused() {
        let ring = |count: usize| vec![KEY; count].join(",");
        assert!(Keyring::parse(&ring(16)).is_ok());
        assert_eq!(complaint(&ring(17)), "17 keys are too many: 16 are the most");
    }

    #[test]
    fn a_key_is_never_echoed() {
        let secret = "sEcReT-that-nobody-may-see";
        for text in [
            secret.to_owned(),
            format!("{KEY}${{{secret}}}"),
            format!("{KEY},{secret}"),
            format!("{KEY}-{secret},"),
        ] {
            let error = Keyring::parse(&text).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("sEcReT") && !shown.contains(KEY), "{shown}");
        }
        let ring = Keyring::parse(&format!("{KEY},{KEY}{secret}")).unwrap();
        assert_eq!(format!("{ring:?}"), "Keyring(2 keys)");
        assert!(!ring.signing().id().contains(&KEY[..4]));
    }

    #[test]
    fn keys_of_one_secret_differ_by_purpose() {
        use hmac::Mac as _;
        let ring = Keyring::parse(KEY).unwrap();
        let mac = |purpose| ring.signing().mac(purpose).clone().chain_update(b"x").finalize().into_bytes();
        let macs: Vec<_> = Purpose::ALL.into_iter().map(mac).collect();
        assert!(macs.iter().enumerate().all(|(at, mac)| !macs[..at].contains(mac)));
        // The table of MACs is in the order of the purposes.
        assert!(Purpose::ALL.iter().enumerate().all(|(at, purpose)| *purpose as usize == at));
    }
}
