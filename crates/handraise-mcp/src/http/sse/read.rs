//! Reading events, as they come.

use std::time::Duration;

/// How much of an event that is too long is kept, to see whose it is.
const HEAD: usize = 4096;
/// The longest id that is kept, in bytes; a longer one is none.
const LONGEST_ID: usize = 1024;
/// The longest name of an event that is kept.
const LONGEST_NAME: usize = 64;
/// How much memory for lines is kept between them.
const KEPT: usize = 16 * 1024;
/// What a line may have beside its data: the longest field name that is known, and ids.
const BESIDE: usize = LONGEST_ID + 64;

/// An event with data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What kind it is; MCP's are `message`, or have none.
    pub name: Option<String>,
    /// Its lines, with `\n` between them. Bytes: whether they are UTF-8 shows where they are read.
    pub data: Vec<u8>,
}

impl Event {
    /// Whether the event carries a frame.
    pub fn is_message(&self) -> bool {
        self.name.as_deref().is_none_or(|name| name == "message")
    }
}

/// What a stream holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// An event.
    Event(Event),
    /// An event was longer than is taken. This is its beginning.
    TooLong(Vec<u8>),
    /// How long to wait before coming back, should the stream end.
    Retry(Duration),
}

/// Reads a stream piece by piece. What it keeps is bounded by the longest event.
#[derive(Debug)]
pub struct Reader {
    longest: usize,
    line: Vec<u8>,
    /// The line is longer than is taken, and the rest of it is skipped.
    skips_line: bool,
    /// The last piece ended with `\r`: a `\n` that follows belongs to it.
    after_cr: bool,
    /// Nothing of the stream has been read as a line.
    is_first: bool,
    next: Next,
    last_id: Option<String>,
}

/// The event that is being read.
#[derive(Debug, Default)]
struct Next {
    data: Vec<u8>,
    has_data: bool,
    is_too_long: bool,
    name: Option<String>,
    id: Option<String>,
}

impl Reader {
    /// A reader for events with at most so much data, in bytes.
    pub fn new(longest: usize) -> Self {
        Self {
            longest,
            line: Vec::new(),
            skips_line: false,
            after_cr: false,
            is_first: true,
            next: Next::default(),
            last_id: None,
        }
    }

    /// The id of the last event that was complete: where the stream goes on when it broke.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How many bytes are held of what is not complete.
    pub fn held(&self) -> usize {
        self.line.capacity() + self.next.data.capacity()
    }

    /// Takes a piece of the stream, and appends what it completes.
    pub fn feed(&mut self, mut piece: &[u8], out: &mut Vec<Item>) {
        if piece.is_empty() {
            return;
        }
        if std::mem::take(&mut self.after_cr) && piece[0] == b'\n' {
            piece = &piece[1..];
        }
        while let Some(end) = memchr::memchr2(b'\r', b'\n', piece) {
            self.extend_line(&piece[..end]);
            self.end_line(out);
            let mut next = end + 1;
            if piece[end] == b'\r' {
                match piece.get(next) {
                    Some(b'\n') => next += 1,
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
            piece = &piece[next..];
        }
        self.extend_line(piece);
    }

    fn extend_line(&mut self, piece: &[u8]) {
        if self.skips_line {
            return;
        }
        // A comment is not kept, however long it is.
        if self.line.first().or(piece.first()) == Some(&b':') && !self.is_first {
            self.line.truncate(1);
            if self.line.is_empty() {
                self.line.push(b':');
            }
            return;
        }
        let room = (self.longest + BESIDE).saturating_sub(self.line.len());
        if piece.len() <= room {
            self.line.extend_from_slice(piece);
            return;
        }
        self.line.extend_from_slice(&piece[..room]);
        self.skips_line = true;
    }

    fn end_line(&mut self, out: &mut Vec<Item>) {
        let mut line = std::mem::take(&mut self.line);
        self.skips_line = false;
        let text = line.strip_prefix(b"\xEF\xBB\xBF").filter(|_| self.is_first).unwrap_or(&line);
        self.is_first = false;
        if text.is_empty() {
            self.dispatch(out);
        } else {
            self.field(text, out);
        }
        if line.capacity() <= KEPT {
            line.clear();
            self.line = line;
        }
    }

    fn field(&mut self, line: &[u8], out: &mut Vec<Item>) {
        let colon = memchr::memchr(b':', line);
        let name = &line[..colon.unwrap_or(line.len())];
        let value = colon.map_or(&[][..], |colon| &line[colon + 1..]);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => self.next.add(value, self.longest),
            b"event" => self.next.name = text(value, LONGEST_NAME).filter(|name| !name.is_empty()),
            b"id" => {
                if let Some(id) = text(value, LONGEST_ID).filter(|id| !id.contains('\0')) {
                    self.next.id = Some(id);
                }
            }
            b"retry" => {
                let digits = text(value, 16).filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()));
                let millis = digits.and_then(|digits| digits.parse().ok());
                out.extend(millis.map(|millis| Item::Retry(Duration::from_millis(millis))));
            }
            _ => {}
        }
    }

    /// An empty line: an event is complete.
    fn dispatch(&mut self, out: &mut Vec<Item>) {
        let Next { data, is_too_long, name, id, .. } = std::mem::take(&mut self.next);
        if let Some(id) = id {
            self.last_id = Some(id).filter(|id| !id.is_empty());
        }
        if is_too_long {
            out.push(Item::TooLong(data));
        } else if !data.is_empty() {
            out.push(Item::Event(Event { name, data }));
        }
    }
}

impl Next {
    /// Takes a line of data, of at most so many bytes together.
    fn add(&mut self, value: &[u8], longest: usize) {
        let separator = usize::from(self.has_data);
        if self.is_too_long || self.data.len() + separator + value.len() > longest {
            let room = HEAD.saturating_sub(self.data.len());
            self.data.extend_from_slice(&value[..value.len().min(room)]);
            self.data.truncate(HEAD);
            self.is_too_long = true;
        } else {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value);
        }
        self.has_data = true;
    }
}

/// A short text of a field.
fn text(value: &[u8], longest: usize) -> Option<String> {
    if value.len() > longest {
        return None;
    }
    std::str::from_utf8(value).ok().map(str::to_owned)
}
