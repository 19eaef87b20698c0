//! Ids and secrets: the only source of randomness.

use uuid::Uuid;

/// Random bytes of a secret.
pub const SECRET_BYTES: usize = 32;

/// The operating system gave no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gave no random bytes; is /dev/urandom there?")]
pub struct RandomError(#[source] getrandom::Error);

/// A new id: a UUIDv7 in its usual spelling.
///
/// Ids of one process sort in the order in which they were minted; 74 random bits make them unguessable enough to
/// name things and unique across machines (AC-60, S27). An id proves nothing: where a secret is needed, see
/// [`secret`].
#[expect(clippy::disallowed_methods, reason = "the one place that mints ids")]
pub fn mint() -> String {
    Uuid::now_v7().to_string()
}

/// A new secret: 256 random bits as 64 hexadecimal digits.
///
/// # Errors
/// When the operating system has no random bytes.
pub fn secret() -> Result<String, RandomError> {
    Ok(hex(&random()?))
}

/// 256 random bits.
///
/// # Errors
/// When the operating system has no random bytes.
pub fn random() -> Result<[u8; SECRET_BYTES], RandomError> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(RandomError)?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 0xf)]]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ac60_ids_are_version_7_distinct_and_sort_by_age() {
        let ids: Vec<String> = (0..1000).map(|_| mint()).collect();
        assert!(ids.iter().all(|id| id.len() == 36 && id.as_bytes()[14] == b'7'), "{}", ids[0]);
        assert!(ids.is_sorted());
        let mut distinct = ids.clone();
        distinct.dedup();
        assert_eq!(distinct.len(), ids.len());
    }

    #[test]
    fn a_secret_is_64_hexadecimal_digits_and_never_the_same() {
        let (one, two) = (secret().unwrap(), secret().unwrap());
        assert!(one.len() == 64 && one.bytes().all(|b| b.is_ascii_hexdigit()), "{one}");
        assert_ne!(one, two);
        assert_eq!(hex(&[0x00, 0x0f, 0xa5, 0xff]), "000fa5ff");
    }
}
