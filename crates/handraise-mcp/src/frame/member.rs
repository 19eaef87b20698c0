//! Members of an object, by name, where they stand.

use std::ops::Range;

use crate::frame::scan::Scanner;

/// The JSON texts of all members of that name, in order; `None` when `object` is no JSON object.
pub(crate) fn members_named<'a>(object: &'a str, name: &str) -> Option<Vec<&'a str>> {
    let mut found = Vec::new();
    walk(object, |is_named, value| {
        if is_named(name) {
            found.extend(object.get(value));
        }
    })?;
    Some(found)
}

/// The JSON text of the first member of that name.
pub(crate) fn member_named<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    object.get(member_at(object, name)?)
}

/// Where the value of the first member of that name stands.
pub(crate) fn member_at(object: &str, name: &str) -> Option<Range<usize>> {
    let mut found = None;
    walk(object, |is_named, value| {
        if found.is_none() && is_named(name) {
            found = Some(value);
        }
    })?;
    found
}

/// Whether an object has a member.
pub(crate) fn has_members(object: &str) -> bool {
    let mut scanner = Scanner::new(object.as_bytes());
    let is_open = scanner.take(b'{').is_ok();
    scanner.space();
    is_open && scanner.peek() != Some(b'}')
}

fn walk(object: &str, mut each: impl FnMut(&dyn Fn(&str) -> bool, Range<usize>)) -> Option<()> {
    let mut scanner = Scanner::new(object.as_bytes());
    let read = scanner.object(|scanner, key, _| {
        let value = scanner.value()?;
        each(&|name| key.is(name), value);
        Ok(())
    });
    read.ok()
}
