//! Streams of events, read in whatever pieces.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn read_in(stream: &[u8], sizes: &[usize], longest: usize) -> (Vec<Item>, Option<String>) {
    let mut reader = Reader::new(longest);
    let mut items = Vec::new();
    let (mut rest, mut sizes) = (stream, sizes.iter().cycle());
    while !rest.is_empty() {
        let size = sizes.next().copied().unwrap_or(rest.len()).clamp(1, rest.len());
        reader.feed(&rest[..size], &mut items);
        rest = &rest[size..];
    }
    (items, reader.last_id().map(str::to_owned))
}

fn read(stream: &str) -> Vec<Item> {
    let (whole, _) = read_in(stream.as_bytes(), &[], 1024);
    for size in 1..4 {
        assert_eq!(read_in(stream.as_bytes(), &[size], 1024).0, whole, "pieces of {size}");
    }
    whole
}

fn message(data: &str) -> Item {
    Item::Event(Event { name: None, data: data.into() })
}

#[test]
fn events_are_read_however_lines_end() {
    for end in ["\n", "\r\n", "\r"] {
        let stream = ["data: é1", "", ": comment", "data:2", "data", "data: 3", "", "data: lost"].join(end);
        assert_eq!(read(&stream), [message("é1"), message("2\n\n3")], "{end:?}");
    }
    assert_eq!(read("\u{feff}data: 1\n\n\u{feff}data: 2\n\n"), [message("1")]);
    assert_eq!(read("data: 1\r\rdata: 2\r\n\r\n\ndata: 3\n\r"), [message("1"), message("2"), message("3")]);
}

#[test]
fn fields_are_read_as_the_standard_says() {
    let named =
        |name: &str, data: &str| Item::Event(Event { name: Some(name.to_owned()), data: data.into() });
    assert_eq!(read("event: message\ndata: 1\n\ndata: 2\n\n"), [named("message", "1"), message("2")]);
    assert_eq!(read("event: ping\ndata:  x \n\n"), [named("ping", " x ")]);
    assert!(
        named("message", "").clone() != message("")
            && !matches!(named("ping", ""), Item::Event(e) if e.is_message())
    );
    assert_eq!(read("data\n\ndata:\n\nDATA: 1\n\nunknown: 1\n\n"), []);
    assert_eq!(
        read("retry: 250\nretry: x\nretry:\nretry: -1\nretry: 1e3\n\n"),
        [Item::Retry(Duration::from_millis(250))]
    );
}

#[test]
fn the_last_id_is_the_one_of_the_last_complete_event() {
    for (stream, expected) in [
        ("id: 1\ndata: x\n\nid: 2\ndata: y\n", Some("1")),
        ("id: 1\ndata:\n\n", Some("1")),
        ("id: 1\n\ndata: x\n\n", Some("1")),
        ("id: 1\n\nid: 2\0\n\n", Some("1")),
        ("id: 1\n\nid\n\n", None),
        ("data: x\n\n", None),
    ] {
        assert_eq!(read_in(stream.as_bytes(), &[1], 100).1.as_deref(), expected, "{stream:?}");
    }
    let long = format!("id: 1\n\nid: {}\n\n", "x".repeat(2000));
    assert_eq!(read_in(long.as_bytes(), &[], 100).1.as_deref(), Some("1"));
}

#[test]
fn s37_an_event_that_is_too_long_is_told_by_its_head_and_the_next_one_is_read() {
    let head = r#"{"jsonrpc":"2.0","id":7,"result":""#;
    for stream in [
        format!("data: {head}{}\n\ndata: 2\n\n", "x".repeat(100_000)),
        format!(
            "data: {head}\n{}\ndata: 2\n\n",
            "data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n".repeat(3000)
        ),
    ] {
        for size in [1, 7, 5000, 1_000_000] {
            let (items, _) = read_in(stream.as_bytes(), &[size], 64);
            assert_eq!(items.len(), 2, "{items:?}");
            assert!(
                matches!(&items[0], Item::TooLong(found) if found.starts_with(head.as_bytes()) && found.len() <= 4096)
            );
            assert_eq!(items[1], message("2"));
        }
    }
    let exact = format!("data: {}\n\n", "x".repeat(64));
    assert_eq!(read_in(exact.as_bytes(), &[], 64).0, [message(&"x".repeat(64))]);
}

#[test]
fn s37_comments_and_unknown_fields_do_not_pile_up() {
    let mut reader = Reader::new(64);
    let mut items = Vec::new();
    reader.feed(b"data: 1\n:", &mut items);
    for _ in 0..10_000 {
        reader.feed(&[b'x'; 1000], &mut items);
    }
    reader.feed(b"\nunknown: ", &mut items);
    for _ in 0..10_000 {
        reader.feed(&[b'x'; 1000], &mut items);
    }
    assert!(format!("{reader:?}").len() < 20_000);
    reader.feed(b"\n\n", &mut items);
    assert_eq!(items, [message("1")]);
}

#[test]
fn what_is_written_is_what_streams_look_like() {
    let mut out = Vec::new();
    retry(&mut out, Duration::from_secs(1));
    event(&mut out, Some("e-1"), b"");
    event(&mut out, Some("e-2"), b"{\"a\":\r\n1}");
    comment(&mut out);
    event(&mut out, None, b"{}");
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "retry: 1000\n\nid: e-1\ndata: \n\nid: e-2\nevent: message\ndata: {\"a\":\ndata: 1}\n\n:\n\nevent: message\ndata: {}\n\n"
    );
}

proptest! {
    #[test]
    fn what_is_written_is_read_however_it_is_cut(
        frames in prop::collection::vec("[^\r]{1,40}", 0..6),
        sizes in prop::collection::vec(1_usize..20, 1..8),
    ) {
        let mut stream = Vec::new();
        for (number, frame) in frames.iter().enumerate() {
            event(&mut stream, Some(&number.to_string()), frame.as_bytes());
            comment(&mut stream);
        }
        let (items, last) = read_in(&stream, &sizes, 1024);
        let expected: Vec<Item> = frames
            .iter()
            .map(|frame| Item::Event(Event { name: Some("message".to_owned()), data: frame.clone().into() }))
            .collect();
        prop_assert_eq!(items, expected);
        prop_assert_eq!(last, frames.len().checked_sub(1).map(|last| last.to_string()));
    }

    #[test]
    fn cuts_change_nothing_in_any_stream(
        stream in "(data|id|event|retry|:|[\r\n]|\u{feff}| |[a-z0-9é\0]){0,60}",
        sizes in prop::collection::vec(1_usize..9, 1..8),
        longest in 0_usize..12,
    ) {
        prop_assert_eq!(read_in(stream.as_bytes(), &sizes, longest), read_in(stream.as_bytes(), &[], longest));
    }
}
