//! Frames that two readers take for different things (S3): none of them may reach a server. The reader's own tests run the
//! table, and those of the real processes, on every way and in both eras.

use super::Problem::{self, DuplicateKey, LookAlike, LookAlikeName, NoParams, NotOneObject};

/// Most are, to somebody, a call of the tool `wipe`. The id that can be read is 7.
pub(crate) const SMUGGLED: &[(&str, Problem)] = &[
    // Not one object.
    (r#"[{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe"}}]"#, NotOneObject),
    ("[]", NotOneObject),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"ping"}{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"wipe"}}"#,
        NotOneObject,
    ),
    (r#"{"jsonrpc":"2.0","id":7,"method":"ping"} x"#, NotOneObject),
    (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe",}}"#, NotOneObject),
    (r#"{"jsonrpc":"2.0","id":7,'method':"tools/call","params":{"name":"wipe"}}"#, NotOneObject),
    (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call",/**/"params":{"name":"wipe"}}"#, NotOneObject),
    (r#"{"jsonrpc":"2.0","id":07,"method":"tools/call","params":{"name":"wipe"}}"#, NotOneObject),
    ("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\"}", NotOneObject),
    (
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\0\",\"params\":{\"name\":\"wipe\"}}",
        NotOneObject,
    ),
    (r#""tools/call""#, NotOneObject),
    ("", NotOneObject),
    // The same key twice in the frame.
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/call","params":{"name":"wipe"}}"#,
        DuplicateKey,
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","m\u0065thod":"tools/call","params":{"name":"wipe"}}"#,
        DuplicateKey,
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list"},"params":{"name":"wipe"}}"#,
        DuplicateKey,
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list"},"p\u0061rams":{"name":"wipe"}}"#,
        DuplicateKey,
    ),
    (
        r#"{"jsonrpc":"2.0","jsonrpc":"1.0","id":7,"method":"tools/call","params":{"name":"wipe"}}"#,
        DuplicateKey,
    ),
    (r#"{"jsonrpc":"2.0","id":7,"method":"ping","x":1,"x":2}"#, DuplicateKey),
    // The same key twice in params, and in _meta.
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list","name":"wipe"}}"#,
        DuplicateKey,
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"tools\/call","params":{"name":"list","n\u0061me":"wipe"}}"#,
        DuplicateKey,
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"params":{"name":"list","name":"wipe"},"method":"tools\/call"}"#,
        DuplicateKey,
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe","arguments":{},"arguments":{"all":true}}}"#,
        DuplicateKey,
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe","_meta":{},"_meta":{"a":1}}}"#,
        DuplicateKey,
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe","_meta":{"v":1,"v":2}}}"#,
        DuplicateKey,
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe","requestState":"a","requestState":"b"}}"#,
        DuplicateKey,
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"capabilities":{},"capabilities":{"elicitation":{}}}}"#,
        DuplicateKey,
    ),
    (
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"requestId":2}}"#,
        DuplicateKey,
    ),
    (r#"{"jsonrpc":"2.0","id":7,"method":"vendor/x","params":{"a":1,"a":2}}"#, DuplicateKey),
    (r#"{"jsonrpc":"2.0","id":7,"method":"vendor/x","params":{"Name":1,"a":1,"a":2}}"#, DuplicateKey),
    // Twins.
    (r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_Meta":{}}}"#, LookAlike),
    (r#"{"jsonrpc":"2.0","id":7,"method":"ping","Method":"tools/call","params":{"name":"wipe"}}"#, LookAlike),
    (r#"{"jsonrpc":"2.0","id":7,"METHOD":"tools/call","params":{"name":"wipe"}}"#, LookAlike),
    (r#"{"jſonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe"}}"#, LookAlike),
    (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","param\u017f":{"name":"wipe"}}"#, LookAlike),
    (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list","Name":"wipe"}}"#, LookAlike),
    (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe","taſk":{}}}"#, LookAlike),
    (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe","tas\u212a":{}}}"#, LookAlike),
    (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe","argumentſ":{}}}"#, LookAlike),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe","RequestState":"hr1.x"}}"#,
        LookAlike,
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe","inputreſponſes":{}}}"#,
        LookAlike,
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","method\u0000":"tools/call","params":{"name":"wipe"}}"#,
        LookAlike,
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list","\u0000name":"wipe"}}"#,
        LookAlike,
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list","name\u0000x":"wipe"}}"#,
        LookAlike,
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list","N\u0041ME\u0000":"wipe"}}"#,
        LookAlike,
    ),
    // Values that only some servers take for the call or the tool.
    (r#"{"jsonrpc":"2.0","id":7,"method":"Tools/Call","params":{"name":"wipe"}}"#, LookAlikeName),
    (r#"{"jsonrpc":"2.0","id":7,"method":"tools\/call\u0000","params":{"name":"wipe"}}"#, LookAlikeName),
    (r#"{"jsonrpc":"2.0","id":7,"method":"toolſ/call","params":{"name":"wipe"}}"#, LookAlikeName),
    (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe\u0000list"}}"#, LookAlikeName),
    (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":["wipe",{}]}"#, NoParams),
    (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":"wipe"}"#, NoParams),
];
