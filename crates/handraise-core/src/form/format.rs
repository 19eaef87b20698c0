//! The formats that are checked: `email`, `uri`, `date`, `date-time`. Any other is kept as text.

/// Whether `text` is of `format`; unknown formats take anything.
pub(super) fn matches(format: &str, text: &str) -> bool {
    match format {
        "email" => is_email(text),
        "uri" => is_uri(text),
        "date" => is_date(text.as_bytes()),
        "date-time" => is_date_time(text.as_bytes()),
        _ => true,
    }
}

/// What a text of `format` looks like, for an error message.
pub(super) fn example(format: &str) -> &'static str {
    match format {
        "email" => "an e-mail address such as name@example.org",
        "uri" => "an address such as https://example.org/page",
        "date" => "a date such as 2026-01-31",
        _ => "a date and time such as 2026-01-31T09:30:00Z",
    }
}

/// As HTML's e-mail input takes it: a dot-free domain is fine, quotes and comments are not.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else { return false };
    text.len() <= 254
        && (1..=64).contains(&local.len())
        && local.bytes().all(|b| b.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~-".contains(&b))
        && domain.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
}

/// RFC 3986 with a scheme; web addresses also need a host.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let scheme_fits = scheme.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    if !scheme_fits || rest.is_empty() || !is_uri_text(rest.as_bytes()) {
        return false;
    }
    if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") {
        let Some(after) = rest.strip_prefix("//") else { return false };
        let authority = after.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        return !host.is_empty() && !host.starts_with(':');
    }
    true
}

fn is_uri_text(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let [byte, after @ ..] = rest {
        rest = match byte {
            b'%' => match after {
                [a, b, after @ ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => after,
                _ => return false,
            },
            b if b.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(b) => after,
            _ => return false,
        };
    }
    true
}

/// RFC 3339 `full-date`, with the real length of months.
fn is_date(text: &[u8]) -> bool {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else { return false };
    let (Some(year), Some(month), Some(day)) =
        (number(&[*y1, *y2, *y3, *y4]), number(&[*m1, *m2]), number(&[*d1, *d2]))
    else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// RFC 3339 `date-time`: an offset is part of it; a leap second may be.
fn is_date_time(text: &[u8]) -> bool {
    let Some((date, rest)) = text.split_at_checked(10) else { return false };
    let [b'T' | b't' | b' ', h1, h2, b':', m1, m2, b':', s1, s2, rest @ ..] = rest else { return false };
    let within = |a: u8, b: u8, most: u32| number(&[a, b]).is_some_and(|value| value <= most);
    let rest = match rest {
        [b'.', fraction @ ..] => {
            let digits = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
            if digits == 0 {
                return false;
            }
            &fraction[digits..]
        }
        rest => rest,
    };
    let offset = match rest {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => within(*h1, *h2, 23) && within(*m1, *m2, 59),
        _ => false,
    };
    is_date(date) && within(*h1, *h2, 23) && within(*m1, *m2, 59) && within(*s1, *s2, 60) && offset
}

fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + u32::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: &str, good: &[&str], bad: &[&str]) {
        for text in good {
            assert!(matches(format, text), "{format} should take {text:?}");
        }
        for text in bad {
            assert!(!matches(format, text), "{format} should refuse {text:?}");
        }
    }

    #[test]
    fn formats_are_checked_sensibly() {
        check(
            "email",
            &["a@b.example", "first.last+tag@sub.example.org", "root@localhost", "o'neil@x.io"],
            &["", "a", "a@", "@b", "a b@c.d", "a@b@c", "a@-b.c", "a@b..c", "a@b.c\n", "ä@b.c"],
        );
        check(
            "uri",
            &[
                "https://example.org",
                "http://[::1]:80/a?b#c",
                "mailto:a@b.c",
                "urn:isbn:12",
                "https://u@h/%20",
            ],
            &[
                "",
                "example.org",
                "https://",
                "https:///x",
                "//host/x",
                "1a:b",
                "http://a b",
                "http://a/%zz",
                "https://ü.example",
                "a:",
            ],
        );
        check(
            "date",
            &["2026-01-31", "2024-02-29", "2000-02-29", "0000-01-01"],
            &[
                "",
                "2026-02-29",
                "1900-02-29",
                "2026-13-01",
                "2026-00-10",
                "2026-1-1",
                "26-01-01",
                "2026-01-32",
                "2026-01-01T",
                "２026-01-01",
            ],
        );
        check(
            "date-time",
            &[
                "2026-01-31T09:30:00Z",
                "2026-01-31t09:30:00.123456+05:30",
                "1990-12-31T23:59:60Z",
                "2026-01-31 09:30:00z",
            ],
            &[
                "",
                "2026-01-31",
                "2026-01-31T09:30Z",
                "2026-01-31T09:30:00",
                "2026-01-31T24:00:00Z",
                "2026-01-31T09:60:00Z",
                "2026-01-31T09:30:00+24:00",
                "2026-01-31T09:30:00.Z",
            ],
        );
    }

    #[test]
    fn an_unknown_format_is_text() {
        check("ipv4", &["anything", ""], &[]);
    }
}
