//! Canonical text.

use super::*;

fn text(json: &str) -> Result<String, Unbindable> {
    canonical(json.as_bytes(), None, Dialect::Plain).map(|canonical| canonical.as_str().to_owned())
}

#[test]
fn members_are_in_the_order_of_their_code_units() {
    assert_eq!(
        text(r#"{"b":1.0,"a":[true,null,"\u0061"],"\u20ac":{}}"#).unwrap(),
        r#"{"a":[true,null,"a"],"b":1,"€":{}}"#
    );
}
