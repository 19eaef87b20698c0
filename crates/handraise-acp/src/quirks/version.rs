//! Versions of agents, as far as thresholds need them.

/// A version that compares: major, minor, patch, and whether it is a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    numbers: [u64; 3],
    /// A pre-release comes before its release.
    released: bool,
}

impl Version {
    /// The release `major.minor.0`.
    pub const fn release(major: u64, minor: u64) -> Self {
        Self { numbers: [major, minor, 0], released: true }
    }

    /// Reads `1.2.3`, `v1.2`, `1.2.3-beta.1`, `1.2.3+build`. Anything else is no version, and an agent without one
    /// gets no quirk that needs one.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let text = text.split('+').next()?;
        let (numbers, suffix) = match text.split_once('-') {
            Some((numbers, suffix)) => (numbers, Some(suffix)),
            None => (text, None),
        };
        if suffix.is_some_and(str::is_empty) {
            return None;
        }
        let mut parts = numbers.split('.');
        let mut read = [0; 3];
        for (at, slot) in read.iter_mut().enumerate() {
            match parts.next() {
                Some(part) if !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) => {
                    *slot = part.parse().ok()?;
                }
                None if at > 0 => {}
                _ => return None,
            }
        }
        parts.next().is_none().then_some(Self { numbers: read, released: suffix.is_none() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number_and_pre_releases_come_first() {
        let version = |text: &str| Version::parse(text).unwrap();
        assert!(version("0.101.0") > version("0.81.0"), "not as text");
        assert!(version("0.81.0-beta.1") < version("0.81.0"));
        assert!(version("0.81.1-beta.1") > version("0.81.0"));
        assert_eq!(version("v0.81"), Version::release(0, 81));
        assert_eq!(version(" 1.2.3+build-5 "), version("1.2.3"));
        assert_eq!(version("1"), Version::release(1, 0));
    }

    #[test]
    fn garbage_is_no_version() {
        for text in [
            "",
            "v",
            "latest",
            "1.x",
            "1..2",
            "1.2.3.4",
            "-1",
            "1.2-",
            "0.+1",
            "１.0",
            "99999999999999999999.0",
        ] {
            assert_eq!(Version::parse(text), None, "{text:?}");
        }
    }
}
