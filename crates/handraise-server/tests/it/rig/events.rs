//! A reader of live events.

use std::collections::VecDeque;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::Value;

use super::within;

/// A live event stream.
pub(crate) struct Events {
    body: Incoming,
    text: String,
    read: VecDeque<Event>,
}

#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Events {
    pub(super) fn new(body: Incoming) -> Self {
        Self { body, text: String::new(), read: VecDeque::new() }
    }

    /// The next event, or `None` when the stream ended.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.read.pop_front() {
                return Some(event);
            }
            let frame = within(self.body.frame()).await?.ok()?;
            self.text.push_str(str::from_utf8(&frame.into_data().unwrap_or_default()).unwrap());
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| {
                    block.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned()
                };
                if block.starts_with(':') {
                    continue;
                }
                self.read.push_back(Event {
                    id: field("id: ").parse().unwrap(),
                    name: field("event: "),
                    data: serde_json::from_str(&field("data: ")).unwrap(),
                });
            }
        }
    }

    /// Reads on until an event of that name.
    pub(crate) async fn until(&mut self, name: &str) -> Event {
        loop {
            let event = self.next().await.expect("the stream goes on");
            if event.name == name {
                return event;
            }
        }
    }
}
