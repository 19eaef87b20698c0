//! The way out of a server: read when something is there, cut into frames, and every frame taken at once.
//!
//! Small frames are taken where they were read, and no memory of a link's own is needed for them. What is left of a read
//! without its end, and everything of large frames, goes into [`Lines`].

use std::{
    future::{Future as _, poll_fn},
    io,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use handraise_transport::{clock::SystemClock, escape, limited::Limited};
use tokio::{io::AsyncReadExt as _, net::unix::pipe, task::yield_now, time::timeout};

use super::{
    budget::Charge,
    child::{PIPE, widened},
    lines::{Found, Lines, each_line},
    link::Link,
    metrics::Count,
    pieces::Came,
};

/// How much a pipe holds once a frame has not fitted.
const LARGE_PIPE: usize = 1024 * 1024;
/// What a link may hold of a line without an end before it is counted.
const UNCOUNTED: usize = 1024 * 1024;
/// How much is read in a row, in bytes, before others have their turn: a server that never stops writing is one of many.
const MOST_IN_A_ROW: usize = 1024 * 1024;
/// How often is read in a row before that.
const MOST_READS_IN_A_ROW: usize = 16;
/// How much of a line of noise is logged, in characters.
const SHOWN: usize = 300;

/// A server's stdout.
#[derive(Debug)]
pub(crate) struct Stdout {
    pipe: pipe::Receiver,
    lines: Lines,
    noise: Limited,
    held: Charge,
    is_large: bool,
    in_a_row: InARow,
}

/// What has been read since somebody else had a turn.
#[derive(Debug, Default, Clone, Copy)]
struct InARow {
    reads: usize,
    bytes: usize,
}

impl Stdout {
    pub(crate) fn new(pipe: pipe::Receiver, link: &Link) -> Self {
        Self {
            pipe,
            lines: Lines::new(link.front.max_frame),
            noise: Limited::new(SystemClock::shared()),
            held: link.budget.force(0),
            is_large: false,
            in_a_row: InARow::default(),
        }
    }

    /// Reads once, takes what has come, and lets go of memory for large frames when nothing has come for `keep`; `None` at
    /// the end. What fails cannot be read on: that is the end.
    pub(crate) async fn read(&mut self, link: &Arc<Link>, keep: Duration) -> Option<()> {
        self.in_a_row.pause().await;
        self.rest(keep).await;
        if self.lines.is_untouched() {
            return poll_fn(|context| self.poll_lent(link, context)).await;
        }
        let count = poll_fn(|context| self.poll_own(context)).await?;
        while let Some(found) = self.lines.next() {
            take(link, &found, &mut self.noise);
        }
        self.count(link, count);
        Some(())
    }

    /// Waits for more, where memory is kept for large frames: room is made when something is there, since until then the
    /// last frame is still being sent, out of the same memory.
    async fn rest(&mut self, keep: Duration) {
        if self.lines.is_roomy() && timeout(keep, self.pipe.readable()).await.is_err() {
            self.lines.shrink();
        }
    }

    /// Reads into a buffer that is lent for the reading.
    fn poll_lent(&mut self, link: &Arc<Link>, context: &mut Context<'_>) -> Poll<Option<()>> {
        let mut lent = link.front.frames.lend();
        let read = pin!(self.pipe.read_buf(&mut *lent)).poll(context);
        let is_read = ready!(self.in_a_row.note(read)).is_some();
        if is_read {
            self.take_all(link, &lent);
        }
        Poll::Ready(is_read.then_some(()))
    }

    /// Reads into memory of this link's own.
    fn poll_own(&mut self, context: &mut Context<'_>) -> Poll<Option<usize>> {
        let read = pin!(self.pipe.read_buf(self.lines.room())).poll(context);
        let count = ready!(self.in_a_row.note(read));
        if let Some(count) = count {
            self.lines.has_read(count);
        }
        Poll::Ready(count)
    }

    /// Takes the last line, which may lack its end.
    pub(crate) fn end(&mut self, link: &Arc<Link>) {
        if let Some(found) = self.lines.last() {
            take(link, &found, &mut self.noise);
        }
    }

    /// Takes every line of a read, and keeps the beginning of one that has not ended.
    fn take_all(&mut self, link: &Arc<Link>, read: &[u8]) {
        let noise = &mut self.noise;
        let rest = each_line(read, link.front.max_frame, |frame| take_frame(link, Came::lent(frame), noise));
        if !rest.is_empty() {
            self.lines.begin(rest);
            while let Some(found) = self.lines.next() {
                take(link, &found, &mut self.noise);
            }
            self.count(link, rest.len());
        }
    }

    /// Counts what is held of a line without an end.
    fn count(&mut self, link: &Arc<Link>, more: usize) {
        if !self.is_large && self.lines.held() >= PIPE {
            self.is_large = true;
            widened(&self.pipe, LARGE_PIPE);
        }
        if self.lines.held() <= UNCOUNTED {
            self.held = link.budget.force(0);
        } else if !self.held.grow(more) {
            self.lines.give_up_for_room();
        }
    }
}

impl InARow {
    /// Gives others their turn where it is time for that.
    async fn pause(&mut self) {
        if self.reads >= MOST_READS_IN_A_ROW || self.bytes >= MOST_IN_A_ROW {
            *self = Self::default();
            yield_now().await;
        }
    }

    /// Takes note of how a read went; `None`: there is nothing more. Who waits has given others their turn.
    fn note(&mut self, read: Poll<io::Result<usize>>) -> Poll<Option<usize>> {
        let Poll::Ready(read) = read else {
            *self = Self::default();
            return Poll::Pending;
        };
        let count = read.ok().filter(|count| *count > 0);
        self.reads += 1;
        self.bytes += count.unwrap_or(0);
        Poll::Ready(count)
    }
}

fn take(link: &Arc<Link>, found: &Found, noise: &mut Limited) {
    match found {
        Found::Frame(frame) => take_frame(link, Came::own(frame), noise),
        Found::TooLong(ends) => {
            link.front.metrics.count(Count::LongFrames);
            link.upstream_too_long(ends);
        }
        Found::NoRoom(ends) => {
            link.front.metrics.count(Count::LongFrames);
            link.upstream_without_room(ends);
        }
    }
}

fn take_frame(link: &Arc<Link>, frame: Came<'_>, noise: &mut Limited) {
    if !link.upstream_line(frame)
        && let Some(left_out) = noise.admit()
    {
        tracing::warn!(
            left_out,
            bytes = frame.bytes().len(),
            "an MCP server wrote a line on stdout that is no frame; it is left out"
        );
        tracing::debug!("the line: {}", escape::shortened(&String::from_utf8_lossy(frame.bytes()), SHOWN));
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;
    use crate::budget::Budget;

    #[test]
    fn who_never_waits_pauses_after_a_bounded_part_of_what_it_reads() {
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut pauses = |in_a_row: &mut InARow| pin!(in_a_row.pause()).poll(&mut context).is_pending();
        let read = |count| Poll::Ready(Ok(count));
        for (count, reads) in [(1, MOST_READS_IN_A_ROW), (MOST_IN_A_ROW / 4, 4)] {
            let mut in_a_row = InARow::default();
            for _ in 0..reads {
                assert!(!pauses(&mut in_a_row));
                assert_eq!(in_a_row.note(read(count)), Poll::Ready(Some(count)));
            }
            assert!(pauses(&mut in_a_row) && !pauses(&mut in_a_row));
        }
        let mut in_a_row = InARow::default();
        assert_eq!(in_a_row.note(read(MOST_IN_A_ROW)), Poll::Ready(Some(MOST_IN_A_ROW)));
        assert_eq!(in_a_row.note(Poll::Pending), Poll::Pending);
        assert!(!pauses(&mut in_a_row), "others had their turn while it waited");
        assert_eq!(in_a_row.note(read(0)), Poll::Ready(None));
    }

    #[tokio::test]
    async fn memory_for_large_frames_is_let_go_when_none_come() {
        let (mut server, pipe) = pipe::pipe().unwrap();
        let mut stdout = Stdout {
            pipe,
            lines: Lines::new(1 << 20),
            noise: Limited::new(SystemClock::shared()),
            held: Budget::new(1).force(0),
            is_large: false,
            in_a_row: InARow::default(),
        };
        let large = ["x".repeat(500_000), "\n".to_owned()].concat();
        let writing = tokio::spawn(async move {
            server.write_all(large.as_bytes()).await.unwrap();
            server
        });
        while stdout.lines.next().is_none() {
            let count = stdout.pipe.read_buf(stdout.lines.room()).await.unwrap();
            stdout.lines.has_read(count);
        }
        assert!(stdout.lines.is_roomy());
        let at_once = Duration::from_millis(1);
        stdout.rest(at_once).await;
        assert!(stdout.lines.is_untouched());
        // Where something comes, that is not waited for.
        stdout.lines.begin("x".repeat(100_000).as_bytes());
        stdout.lines.room().extend_from_slice(b"\n");
        assert!(stdout.lines.next().is_some() && stdout.lines.is_roomy());
        writing.await.unwrap().write_all(b"{}\n").await.unwrap();
        timeout(Duration::from_secs(30), stdout.rest(Duration::from_secs(3600))).await.unwrap();
        assert!(stdout.lines.is_roomy());
    }
}
