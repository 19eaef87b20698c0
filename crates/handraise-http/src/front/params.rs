//! `Mcp-Param-*` headers, which a client's request takes along to a server at a URL (2026-07-28).
//!
//! The tool that is called may never have been listed here, so that nobody here knows which of its arguments are headers.
//! Whoever reads headers on the way sees what the client wrote. What is known to mirror an argument was compared before
//! this where the request is of that era, and is computed anew after it in both: some clients write the newer headers in a
//! session of the older era. A call keeps them for as long as it is open, for it may run again.

use std::sync::Arc;

use handraise_mcp::http::headers::{METHOD, PARAM_PREFIX};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::head::Head;

/// How many are taken along.
const MOST: usize = 64;
/// How long the longest name may be, in bytes.
const LONGEST_NAME: usize = 128;
/// How many bytes all names and values may have together.
const LARGEST: usize = 16 * 1024;

/// What a request takes along; nothing of one whose client writes no such headers.
pub(crate) type Params = Option<Arc<HeaderMap>>;

/// Those of a request that are taken along: each name once, with a value that every reader reads alike.
pub(crate) fn of(head: &Head<'_>) -> Params {
    let is_mirrored = head.headers().any(|(name, _)| name.eq_ignore_ascii_case(METHOD));
    let taken = taken(head);
    (is_mirrored || !taken.is_empty()).then(|| Arc::new(taken))
}

fn taken(head: &Head<'_>) -> HeaderMap {
    let mut given = HeaderMap::new();
    for (name, value) in head.headers() {
        let is_param =
            name.get(..PARAM_PREFIX.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(PARAM_PREFIX));
        if is_param
            && let (Ok(name), Ok(value)) =
                (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value))
        {
            given.append(name, value);
        }
    }
    let mut taken = HeaderMap::new();
    let mut size = 0;
    let mut left_out = 0;
    for name in given.keys() {
        let length = name.as_str().len() + head.only(name.as_str()).map_or(LARGEST, str::len);
        match given.get(name) {
            Some(value) if fits(name) && taken.len() < MOST && size + length <= LARGEST => {
                size += length;
                taken.insert(name, value.clone());
            }
            Some(_) | None => left_out += 1,
        }
    }
    if left_out > 0 {
        tracing::warn!(left_out, "Mcp-Param headers of a client are invalid, or too many, and do not go on");
    }
    taken
}

fn fits(name: &HeaderName) -> bool {
    (PARAM_PREFIX.len() + 1..=LONGEST_NAME).contains(&name.as_str().len())
}

#[cfg(test)]
mod tests {
    use super::{super::head::Header, *};

    fn names(given: &[(&str, &[u8])]) -> Vec<String> {
        let headers: Vec<_> = given.iter().map(|(name, value)| Header { name, value }).collect();
        let head = Head::new("POST", "/mcp", &headers);
        taken(&head).keys().map(|name| name.as_str().to_owned()).collect()
    }

    #[test]
    fn s3_only_headers_of_the_prefix_that_every_reader_reads_alike_are_taken_along() {
        let given: [(&str, &[u8]); 8] = [
            ("Mcp-Param-Region", b"eu"),
            ("mcp-param-", b"nameless"),
            ("Mcp-Param-Twice", b"a"),
            ("Mcp-Param-Twice", b"b"),
            ("Mcp-Param-Raw", b"\xE9"),
            ("Mcp-Parameter", b"x"),
            ("Authorization", b"Bearer hunter2"),
            ("Mcp-Param-Encoded", b"=?base64?w6k=?="),
        ];
        let mut taken = names(&given);
        taken.sort();
        assert_eq!(taken, ["mcp-param-encoded", "mcp-param-region"]);
    }

    #[test]
    fn s37_their_number_and_size_are_bounded() {
        let many: Vec<String> = (0..MOST + 5).map(|number| format!("mcp-param-{number}")).collect();
        let many: Vec<(&str, &[u8])> = many.iter().map(|name| (name.as_str(), &b"x"[..])).collect();
        assert_eq!(names(&many).len(), MOST);
        let long = vec![b'x'; LARGEST / 2];
        let large: Vec<(&str, &[u8])> =
            vec![("mcp-param-a", &long), ("mcp-param-b", &long), ("mcp-param-c", b"x")];
        assert_eq!(names(&large), ["mcp-param-a", "mcp-param-c"]);
        let name = format!("mcp-param-{}", "n".repeat(LONGEST_NAME));
        assert_eq!(names(&[(&name, b"x")]).len(), 0);
    }
}
