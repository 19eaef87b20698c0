//! The connection of one client: what it sends, the calls that are open, and what goes back.

use std::{io, os::fd::AsFd, sync::Arc, time::Duration};

use handraise_holder::EndCause;
use handraise_mcp::{
    Id, RequestId,
    frame::{
        ById, error_response,
        overlong::{self, Overlong},
    },
};
use handraise_transport::frames::{Found, Frames};
use serde_json::Value;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval_at},
};

use super::{
    answer,
    server::{Call, Server, Step},
};

/// The longest frame that is taken. Arguments have a quarter of it at most.
const MAX_FRAME_BYTES: usize = 1024 * 1024;
/// Calls that may wait for a human at once.
const MAX_CALLS: usize = 64;
/// How often a waiting call says that it still waits.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);
/// Frames on their way in either direction.
const QUEUE: usize = 16;

/// Something that the client sent.
#[derive(Debug)]
pub(crate) enum Arrived {
    /// A frame.
    Frame(Vec<u8>),
    /// A frame that is too long: whose it is.
    TooLong(Overlong),
}

/// Puts the questions of a call to a human, and brings back the call's result.
pub(crate) trait Asker: Send + Sync + 'static {
    /// Asks, until there is an answer or `taken_back` completes with the reason why nobody wants one any more. `told` is
    /// completed with the result as soon as there is one; what is done after that, nobody waits for.
    fn ask(
        &self,
        call: &Call,
        told: oneshot::Sender<Value>,
        taken_back: oneshot::Receiver<EndCause>,
    ) -> impl Future<Output = ()> + Send;
}

/// Reads the client's frames on a thread of its own, because a read may wait for as long as the program runs. The end of
/// what is received is the end of the client.
pub(crate) fn read(source: impl AsFd + Send + 'static) -> mpsc::Receiver<Arrived> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    std::thread::spawn(move || {
        let mut frames = Frames::new(source, MAX_FRAME_BYTES);
        loop {
            let more = frames.fill().unwrap_or_else(|error| {
                tracing::warn!("reading from the client failed: {error}");
                false
            });
            while let Some(found) = frames.next() {
                let arrived = match found {
                    Found::Frame(place) => Arrived::Frame(frames.bytes(place.frame).to_vec()),
                    Found::TooLong(ends) => Arrived::TooLong(overlong::read(&ends.head, &ends.tail)),
                };
                if sender.blocking_send(arrived).is_err() {
                    return;
                }
            }
            if !more {
                return;
            }
        }
    });
    receiver
}

/// Serves a client until it has gone, or `stop` completes; then every open call is taken back, and what they still have to
/// tell the inbox is waited for.
///
/// # Errors
/// When stdout cannot be written for another reason than that the client has gone.
pub(crate) async fn serve<A: Asker>(
    mut server: Server,
    asker: Arc<A>,
    mut arriving: mpsc::Receiver<Arrived>,
    stdout: impl AsyncWrite + Unpin + Send + 'static,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let (outgoing, queue) = mpsc::channel(QUEUE);
    let writing = tokio::spawn(write(stdout, queue));
    let mut open = Open { calls: ById::default(), tasks: JoinSet::new(), outgoing };
    let mut stop = std::pin::pin!(stop);
    let cause = loop {
        let arrived = tokio::select! {
            () = &mut stop => break EndCause::Shutdown,
            Some(ended) = open.tasks.join_next() => {
                // A call that panicked has dropped its place by itself.
                if let Ok(id) = ended {
                    open.calls.remove(id.borrow());
                }
                continue;
            }
            () = open.outgoing.closed() => break EndCause::AgentDisconnected,
            arrived = arriving.recv() => arrived,
        };
        let Some(arrived) = arrived else { break EndCause::AgentDisconnected };
        // A client that takes nothing is read no further, and can still be stopped.
        tokio::select! {
            () = open.take(&mut server, &asker, arrived) => {}
            () = &mut stop => break EndCause::Shutdown,
        }
    };
    open.take_back(cause);
    while open.tasks.join_next().await.is_some() {}
    drop(open);
    match writing.await {
        Ok(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

async fn write(mut stdout: impl AsyncWrite + Unpin, mut queue: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(mut frame) = queue.recv().await {
        frame.push(b'\n');
        stdout.write_all(&frame).await?;
        stdout.flush().await?;
    }
    Ok(())
}

/// The open calls, and the way back to the client.
struct Open {
    calls: ById<oneshot::Sender<EndCause>>,
    tasks: JoinSet<RequestId>,
    outgoing: mpsc::Sender<Vec<u8>>,
}

impl Open {
    async fn take<A: Asker>(&mut self, server: &mut Server, asker: &Arc<A>, arrived: Arrived) {
        let reply = match arrived {
            Arrived::Frame(frame) => match server.take(&frame) {
                Step::Nothing => return,
                Step::Reply(reply) => reply,
                Step::Cancelled(id) => return self.cancel(id.borrow()),
                Step::Call(call) => match self.start(asker, call) {
                    Ok(()) => return,
                    Err(refused) => refused,
                },
            },
            Arrived::TooLong(Overlong::Request(id)) => overlong::reply(&id, MAX_FRAME_BYTES),
            Arrived::TooLong(Overlong::Response(_) | Overlong::Unknown) => {
                tracing::warn!(
                    limit = MAX_FRAME_BYTES,
                    "a frame of the client was too long and was thrown away"
                );
                return;
            }
        };
        // Nobody is left to be told where this fails.
        let _ = self.outgoing.send(reply).await;
    }

    fn cancel(&mut self, id: Id<'_>) {
        if let Some(call) = self.calls.remove(id) {
            // A call that has just ended needs no cancelling.
            let _ = call.send(EndCause::RequestCancelled);
        }
    }

    fn take_back(&mut self, cause: EndCause) {
        for call in self.calls.take() {
            let _ = call.send(cause);
        }
    }

    /// Starts to ask, or says why not.
    fn start<A: Asker>(&mut self, asker: &Arc<A>, call: Call) -> Result<(), Vec<u8>> {
        if self.calls.get(call.id.borrow()).is_some() {
            return Err(error_response(call.id.raw(), -32600, "a request with this id is open", None));
        }
        if self.tasks.len() >= MAX_CALLS {
            let why = format!(
                "{MAX_CALLS} calls wait for a human already, which is the most; answer or cancel some"
            );
            return Err(call.response(answer::not_asked(&why)));
        }
        let (sender, taken_back) = oneshot::channel();
        self.calls.insert(call.id.borrow(), sender);
        self.tasks.spawn(answer_call(Arc::clone(asker), call, taken_back, self.outgoing.clone()));
        Ok(())
    }
}

/// Asks for one call, says meanwhile that it waits, and answers it; not, where the client took it back.
async fn answer_call<A: Asker>(
    asker: Arc<A>,
    call: Call,
    taken_back: oneshot::Receiver<EndCause>,
    outgoing: mpsc::Sender<Vec<u8>>,
) -> RequestId {
    let (sender, mut told) = oneshot::channel();
    let mut asking = std::pin::pin!(asker.ask(&call, sender, taken_back));
    let mut waiting = interval_at(Instant::now() + PROGRESS_EVERY, PROGRESS_EVERY);
    waiting.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut count = 0;
    let mut is_over = false;
    loop {
        tokio::select! {
            biased;
            result = &mut told => {
                if let Ok(result) = result {
                    let _ = outgoing.send(call.response(result)).await;
                }
                break;
            }
            () = &mut asking, if !is_over => is_over = true,
            _ = waiting.tick() => {
                count += 1;
                if let Some(progress) = call.progress(count, "waiting for a human's answer in the inbox") {
                    // One that finds no room is one too many.
                    let _ = outgoing.try_send(progress);
                }
            }
        }
    }
    if !is_over {
        asking.await;
    }
    call.id.clone()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::{AsyncBufReadExt as _, BufReader, DuplexStream, duplex};

    use super::*;

    /// Answers after a while; longer ones are taken back.
    struct After(Duration);

    impl Asker for After {
        async fn ask(&self, _: &Call, told: oneshot::Sender<Value>, taken_back: oneshot::Receiver<EndCause>) {
            tokio::select! {
                () = tokio::time::sleep(self.0) => {
                    let _ = told.send(json!({"said": true}));
                }
                cause = taken_back => {
                    if cause == Ok(EndCause::Shutdown) {
                        let _ = told.send(json!({"ended": "shutdown"}));
                    }
                }
            }
        }
    }

    struct Client {
        sender: Option<mpsc::Sender<Arrived>>,
        lines: tokio::io::Lines<BufReader<DuplexStream>>,
        serving: tokio::task::JoinHandle<io::Result<()>>,
        stop: Option<oneshot::Sender<()>>,
    }

    impl Client {
        fn new(answers_after: u64) -> Self {
            let (sender, arriving) = mpsc::channel(QUEUE);
            let (ours, theirs) = duplex(64 * 1024);
            let (stop, stopped) = oneshot::channel();
            let server = Server::new(Duration::from_secs(60));
            let asker = Arc::new(After(Duration::from_secs(answers_after)));
            let stopped = async {
                let _ = stopped.await;
            };
            let serving = tokio::spawn(serve(server, asker, arriving, theirs, stopped));
            Self { sender: Some(sender), lines: BufReader::new(ours).lines(), serving, stop: Some(stop) }
        }

        async fn send(&self, frame: &str) {
            self.sender.as_ref().unwrap().send(Arrived::Frame(frame.into())).await.unwrap();
        }

        async fn call(&self, id: u64) {
            let frame = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"ask_user_question","arguments":{{"questions":[{{"prompt":"Sure?","options":[{{"label":"a"}},{{"label":"b"}}]}}]}},"_meta":{{"progressToken":{id}}}}}}}"#
            );
            self.send(&frame).await;
        }

        /// The next frame; `null` at the end.
        async fn next(&mut self) -> Value {
            let line = self.lines.next_line().await.unwrap();
            line.map(|line| serde_json::from_str(&line).unwrap()).unwrap_or_default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_call_says_so_every_ten_seconds_until_it_is_answered() {
        let mut client = Client::new(35);
        let start = Instant::now();
        client.call(7).await;
        for (count, at) in [(1, 10), (2, 20), (3, 30)] {
            let progress = client.next().await;
            assert_eq!(progress["params"]["progress"], count);
            assert_eq!(progress["params"]["progressToken"], 7);
            assert_eq!(start.elapsed().as_secs(), at);
        }
        let answered = client.next().await;
        assert_eq!((&answered["id"], &answered["result"]["said"]), (&json!(7), &json!(true)));
        assert_eq!(start.elapsed().as_secs(), 35);
        client.sender = None;
        assert_eq!(client.next().await, Value::Null, "nothing follows an answer");
        assert!(client.serving.await.unwrap().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_call_is_taken_back_at_once_and_answered_no_more() {
        let mut client = Client::new(3_000);
        client.call(7).await;
        client.call(8).await;
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#).await;
        client.send(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#).await;
        assert_eq!(client.next().await["id"], 9);
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}"#).await;
        client.sender = None;
        assert_eq!(client.next().await, Value::Null);
        assert!(client.serving.await.unwrap().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_client_takes_back_every_call_and_so_does_a_signal() {
        let mut client = Client::new(3_000);
        client.call(7).await;
        client.sender = None;
        assert_eq!(client.next().await, Value::Null, "nobody is left to be told");
        assert!(client.serving.await.unwrap().is_ok());

        let mut client = Client::new(3_000);
        client.call(7).await;
        client.send(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#).await;
        assert_eq!(client.next().await["id"], 9);
        client.stop.take().unwrap().send(()).unwrap();
        assert_eq!(client.next().await["result"]["ended"], "shutdown");
        assert!(client.serving.await.unwrap().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn s37_calls_and_frames_are_bounded() {
        let mut client = Client::new(3_000);
        for id in 0..=MAX_CALLS as u64 {
            client.call(id).await;
        }
        let refused = client.next().await;
        assert_eq!((&refused["id"], &refused["result"]["isError"]), (&json!(MAX_CALLS), &json!(true)));
        client.call(3).await;
        assert_eq!(client.next().await["error"]["code"], -32600, "an id that is open");
        let long = Arrived::TooLong(Overlong::Request("70".into()));
        client.sender.as_ref().unwrap().send(long).await.unwrap();
        assert_eq!(client.next().await["id"], 70);
    }
}
