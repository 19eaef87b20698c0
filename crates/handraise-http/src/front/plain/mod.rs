//! The short way of a request: a POST of the endpoint, as nearly every client sends nearly all of them; and a GET of it, whose
//! stream rests for as long as its session lasts, without the buffers that hyper has for a connection.
//!
//! A call passes here in one read, one write to its server, one read of the answer and one write. What is read must be
//! plain ([`request`]): its head comes whole, it says how long its body is, and asks for nothing that HTTP can do beside.
//! Everything else makes its connection hyper's for good, with the bytes that were read. So there is one reading of what is
//! hard to read, and it is hyper's; and one decision about both, which is [`service`] and [`post`].

mod request;
mod response;
mod wire;

use std::{
    future::{Future as _, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::header;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::yield_now,
    time::timeout,
};
use tokio_util::sync::WaitForCancellationFuture;

use self::{
    request::Plain,
    wire::{Gone, Wire},
};
use super::{
    Front,
    body::Patience,
    budget::Charge,
    door::{Busy, Place},
    head::Head,
    metrics::Count,
    pieces::Came,
    post::{self, Admitted, Served},
    quick::Quick,
    reply::Refusal,
    service::{self, Purpose},
    waiting::{Due, Waiting},
};

pub(crate) use self::{
    response::{Beginning, Date, write_head, write_json_head},
    wire::{COPIED, ROOM},
};

/// How long a client that is told that its connection ends may take to hear it.
const FAREWELL: Duration = Duration::from_millis(500);

/// A connection that goes on with a request which is not plain, and what was read of it.
pub(crate) struct Rest<S> {
    pub(crate) stream: S,
    pub(crate) read: Bytes,
}

/// Serves plain requests; `None`: the connection is over. `leaving` completes when a connection at rest has to go. `quick`
/// is the way around this task, where there is one.
pub(crate) async fn serve<S>(
    front: &Arc<Front>,
    stream: S,
    place: &Arc<Place>,
    is_local: bool,
    quick: Option<Arc<Quick>>,
    mut leaving: Pin<&mut WaitForCancellationFuture<'_>>,
) -> Option<Rest<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut wire = Wire::new(stream, &front.spare);
    let reception = Reception { front, place, is_local, quick: quick.as_ref() };
    loop {
        let begun = if let Some(begun) = reception.look_at_rest(&mut wire) {
            begun
        } else {
            let next =
                poll_fn(|context| match wire.poll_look(context, |read| reception.look(Came::lent(read))) {
                    Poll::Ready(begun) => Poll::Ready(begun.map_err(Over::from)),
                    // Looked at only while nothing is to be done.
                    Poll::Pending => leaving.as_mut().poll(context).map(|()| Err(Over::Leaving)),
                });
            match next.await {
                Ok(begun) => begun,
                Err(Over::Gone) => return None,
                Err(Over::Leaving) => return reception.leave(wire).await,
            }
        };
        let Looked { begun, busy } = begun;
        let served = match begun {
            Begun::Served(served) => served,
            Begun::Incomplete(arriving) => reception.collect(&mut wire, arriving).await.ok()?,
            Begun::Other => {
                drop(busy);
                // What is no whole head yet has its time.
                place.has_read();
                return Some(wire.into_rest());
            }
        };
        let (due, busy) = match served {
            Served::Now(reply) => (Due::Reply(reply), Some(busy)),
            Served::Later(waiting) => reception.wait(&mut wire, waiting, busy, leaving.as_mut()).await?,
        };
        let reply = match due {
            Due::Nothing => continue,
            Due::Rest { head, body, done } => {
                tokio::select! {
                    biased;
                    sent = wire.send_rest(head, body, done) => sent.ok()?,
                    () = place.away.cancelled() => return None,
                }
                continue;
            }
            Due::Reply(reply) => reply,
        };
        let is_last = reply.also.as_ref().is_some_and(|(name, _)| name == header::CONNECTION);
        // A connection is at work while a stream goes on. An answer with an end is the client's to take: it has its time.
        let _busy = busy.filter(|_| reply.body.length().is_none());
        if place.is_half_closed() {
            reply.body.note_half_closed();
        }
        let date = front.date.text();
        tokio::select! {
            biased;
            sent = wire.send(reply, &date) => sent.ok()?,
            () = place.away.cancelled() => return None,
        }
        if is_last {
            wire.end().await;
            return None;
        }
    }
}

/// Why no more requests are served.
enum Over {
    /// The client has left.
    Gone,
    /// The connection has to go.
    Leaving,
}

impl From<Gone> for Over {
    fn from(Gone: Gone) -> Self {
        Self::Gone
    }
}

/// Where the requests of a connection are looked at.
#[derive(Clone, Copy)]
struct Reception<'a> {
    front: &'a Arc<Front>,
    place: &'a Arc<Place>,
    is_local: bool,
    quick: Option<&'a Arc<Quick>>,
}

/// A request of which something was read, on a connection that is at work for it.
struct Looked {
    begun: Begun,
    busy: Busy,
}

/// How far a request has come with what was read at once.
enum Begun {
    /// It was all there.
    Served(Served),
    /// Its body is on its way.
    Incomplete(Arriving),
    /// It is not plain, or to be refused before its body is here: hyper reads over that.
    Other,
}

/// A request that is let in, and whose body is on its way.
struct Arriving {
    plain: Plain,
    admitted: Admitted,
    charge: Charge,
}

impl Reception<'_> {
    /// Decides about the request that comes next, if something of it was read behind the last one.
    fn look_at_rest<S>(self, wire: &mut Wire<'_, S>) -> Option<Looked> {
        if wire.read().is_empty() {
            return None;
        }
        let read = wire.take();
        let (looked, taken) = self.look(Came::own(&read));
        wire.give_back(read, taken);
        Some(looked)
    }

    /// What becomes of the request at the beginning of `read`, and how much of that is done with.
    fn look(self, read: Came<'_>) -> (Looked, usize) {
        let busy = self.place.work();
        let (begun, taken) = self.begin(read);
        (Looked { begun, busy }, taken)
    }

    fn begin(self, read: Came<'_>) -> (Begun, usize) {
        let mut place = request::place();
        let plain = request::read(read.bytes(), &mut place);
        let plain = plain.filter(|(_, plain)| plain.length <= self.front.max_frame);
        let Some((head, plain)) = plain else { return (Begun::Other, 0) };
        if head.method == request::GET {
            self.front.metrics.count(Count::Requests);
            return (Begun::Served(self.get(&head)), plain.end());
        }
        let is_whole = read.bytes().len() >= plain.end();
        let admitted = self.admit(&head, plain.length);
        if is_whole || admitted.is_ok() {
            self.front.metrics.count(Count::Requests);
        }
        match admitted {
            Ok((admitted, charge)) if is_whole => {
                let body = read.part(plain.head..plain.end());
                let served = post::serve(self.front, &head, &admitted, body, charge, self.quick);
                (Begun::Served(served), plain.end())
            }
            Ok((admitted, charge)) => (Begun::Incomplete(Arriving { plain, admitted, charge }), 0),
            Err(refusal) if is_whole => (Begun::Served(self.refuse(refusal)), plain.end()),
            Err(_) => (Begun::Other, 0),
        }
    }

    /// Waits for the beginning of an answer; `None`: the client has left, or the connection has to.
    async fn wait<S>(
        self,
        wire: &mut Wire<'_, S>,
        mut waiting: Waiting,
        busy: Busy,
        mut leaving: Pin<&mut WaitForCancellationFuture<'_>>,
    ) -> Option<(Due, Option<Busy>)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        waiting.keep(busy);
        let first = poll_fn(|context| {
            if let Poll::Ready(first) = waiting.poll(context) {
                return Poll::Ready(Some(first));
            }
            if wire.poll_gone(context).is_ready() {
                return Poll::Ready(None);
            }
            if !wire.read().is_empty()
                && waiting.note_more()
                && let Poll::Ready(first) = waiting.poll(context)
            {
                return Poll::Ready(Some(first));
            }
            // An answer that goes out by itself wakes nobody: from then on the connection is at rest, and may have to leave.
            if leaving.as_mut().poll(context).is_ready()
                && let Poll::Ready(first) = waiting.poll(context)
            {
                return Poll::Ready(Some(first));
            }
            Poll::Pending
        });
        let first = first.await?;
        Some(waiting.due(first))
    }

    fn admit(self, head: &Head<'_>, length: usize) -> Result<(Admitted, Charge), Refusal> {
        let Purpose::Endpoint(principal) = service::let_in(self.front, head, self.is_local)? else {
            return Err(Refusal::NotFound);
        };
        self.place.let_in();
        let admitted = Admitted::new(self.front, head, &principal)?;
        let charge = admitted.budget(self.front).charge(length).ok_or(Refusal::InFlight)?;
        Ok((admitted, charge))
    }

    /// Opens a stream, or refuses to.
    fn get(self, head: &Head<'_>) -> Served {
        let purpose = service::let_in(self.front, head, self.is_local);
        let stream = purpose.and_then(|purpose| match purpose {
            Purpose::Endpoint(principal) => {
                self.place.let_in();
                service::get(self.front, head, &principal)
            }
            Purpose::Metrics => Err(Refusal::NotFound),
        });
        stream.map_or_else(|refusal| self.refuse(refusal), Served::Now)
    }

    /// Waits for the rest of a body within its time.
    async fn collect<S>(self, wire: &mut Wire<'_, S>, arriving: Arriving) -> Result<Served, Gone>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let Arriving { plain, admitted, charge } = arriving;
        let mut patience = Patience::default();
        let come = poll_fn(|context: &mut Context<'_>| {
            while wire.read().len() < plain.end() {
                match wire.poll_fill_to(plain.end(), context) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(Gone)) => return Poll::Ready(Err(Gone)),
                    // It has come no further within its time.
                    Poll::Pending => {
                        let come = wire.read().len() - plain.head;
                        return patience.poll(come, context).map(|()| Ok(false));
                    }
                }
            }
            Poll::Ready(Ok(true))
        });
        if !come.await? {
            return Ok(self.refuse(Refusal::Slow));
        }
        let read = wire.take();
        let served = {
            let mut place = request::place();
            let body = Came::own(&read).part(plain.head..plain.end());
            let head = request::read(&read, &mut place).map(|(head, _)| head);
            head.map(|head| post::serve(self.front, &head, &admitted, body, charge, self.quick))
        };
        wire.give_back(read, plain.end());
        // It was read before.
        served.ok_or(Gone)
    }

    /// Ends a connection at rest. What its client has sent in this very moment is answered rather than cut off.
    async fn leave<S>(self, mut wire: Wire<'_, S>) -> Option<Rest<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        if self.place.away.is_cancelled() {
            return None;
        }
        // What has come is heard of with the next turn.
        yield_now().await;
        let looked = poll_fn(|context| Poll::Ready(wire.poll_look(context, |read| ((), read.len())))).await;
        if looked == Poll::Ready(Ok(())) {
            let farewell = async {
                wire.send(Refusal::Ending.reply(None), &self.front.date.text()).await.ok()?;
                wire.end().await;
                // What is left of the request would cut the answer off, if nobody read it.
                wire.skip_rest().await;
                Some(())
            };
            // Who does not take it is not waited for.
            let _ = timeout(FAREWELL, farewell).await;
        }
        None
    }

    fn refuse(self, refusal: Refusal) -> Served {
        service::count(self.front, refusal);
        Served::Now(refusal.reply(None))
    }
}
