//! `[upstream] headers`.

use std::collections::BTreeMap;

use super::{UPSTREAM_HEADERS, entry::pairs};
use crate::{error::ConfigError, file::ConfigFile, value::Secret};

/// `[upstream] headers`: what every request to `--upstream` carries.
pub(crate) fn upstream_headers(file: &ConfigFile) -> Result<BTreeMap<String, Secret>, ConfigError> {
    let Some(value) = file.value(UPSTREAM_HEADERS) else { return Ok(BTreeMap::new()) };
    pairs(value).ok_or_else(|| ConfigError::Table {
        place: file.place(UPSTREAM_HEADERS),
        table: UPSTREAM_HEADERS,
        expected: "takes names with text, such as { Authorization = \"Bearer …\" }",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_upstream_are_read_and_not_shown() {
        let read = |text: &str| {
            let file = ConfigFile::parse("/h.toml", text).map_err(|error| error.to_string())?;
            upstream_headers(&file).map_err(|error| error.to_string())
        };
        let headers =
            read("[upstream]\nheaders = { Authorization = 'Bearer hunter2', X-Team = 'a' }").unwrap();
        assert_eq!(headers["Authorization"].expose(), "Bearer hunter2");
        assert_eq!(headers.len(), 2);
        assert!(!format!("{headers:?}").contains("hunter2"));
        assert_eq!(read("[upstream.headers]\nX-Team = 'a'").unwrap().len(), 1);
        assert!(read("").unwrap().is_empty());
        for wrong in ["headers = 'hunter2'", "headers = { A = 7 }", "headers = ['a']"] {
            let error = read(&format!("[upstream]\n{wrong}")).unwrap_err();
            assert!(error.starts_with("/h.toml:2, upstream.headers takes names with text"), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        let error = read("[upstream]\nheader = {}").unwrap_err();
        assert!(error.ends_with("did you mean 'upstream.headers'?"), "{error}");
    }
}
