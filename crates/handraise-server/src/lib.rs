//! The inbox: backend, live events and page (inbox.md).
//!
//! Asks come in over the holder stream (`holder`), are kept by `handraise_store`, and are answered over HTTP
//! (`routes`). Three rules hold everywhere: only a holder adjudicates (`answering`), nothing is told before it is
//! committed (`publish`), and nothing is let in before the walls (`walls`) and the token (`access`) allow it.

mod access;
mod agents;
mod answering;
mod audit;
mod door;
mod error;
mod events;
mod extract;
mod failure;
mod flags;
mod holder;
mod hub;
mod inbox;
mod live;
mod local;
mod metrics;
mod net;
mod open;
mod page;
mod peer;
mod publish;
mod routes;
mod settings;
mod surfaces;
mod sweep;
mod walls;

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
    sync::Arc,
};

use handraise_api::access::{CreateToken, CreatedToken};
use handraise_core::Moment;
use handraise_store::{Now, Store};
use handraise_transport::{clock::SharedClock, ids};
use tokio::{net::TcpListener, sync::watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    access::Access, agents::Agents, events::Events, flags::RuntimeFlags, inbox::Inbox, walls::Walls,
};

pub use error::ServeError;
pub use local::InboxFile;
pub use routes::openapi;
pub use settings::{
    AgentSettings, Caps, DEFAULT_LIMITS, FlagSetting, FlagSettings, Launcher, Ready, Settings, Timing,
};

/// Runs an inbox until `shutdown` completes.
///
/// `ready` is called once, when connections are accepted on both listeners and `inbox.json` is written.
///
/// # Errors
/// When the data directory, the database or a listener cannot be used; the message says which and what to do.
pub async fn serve(
    settings: Settings,
    ready: impl FnOnce(Ready) + Send,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    if !settings.listen.ip().is_loopback() && !settings.insecure_behind_proxy {
        return Err(ServeError::BeyondLoopback(settings.listen));
    }
    let listener = TcpListener::bind(settings.listen)
        .await
        .map_err(|source| ServeError::Listen { address: settings.listen, source })?;
    let address =
        listener.local_addr().map_err(|source| ServeError::Listen { address: settings.listen, source })?;
    let data_dir = settings.data_dir.clone();
    handraise_store::prepare(&data_dir)?;
    let lock = local::lock(&data_dir)?;
    let (store, run) =
        Store::open_with(&data_dir, &boot(), now(&settings.clock), settings.caps.cache_bytes).await?;
    let left_to_send = store.last_notice().await?;
    let access =
        Access::load(store.clone(), Arc::clone(&settings.clock), settings.timing.page_session).await?;
    let flags = Arc::new(RuntimeFlags::new(settings.flags, store.flags().await?));
    let (local, socket) = local::listen(&data_dir)?;
    let url = format!("http://{}", reachable(address));
    local::announce(&data_dir, &url, &socket, &access).await?;
    let sign_in_secret = access.offer_sign_in(settings.timing.sign_in)?;

    let caps = settings.caps;
    let app = Arc::new(Inbox {
        store,
        access,
        hub: hub::Hub::default(),
        open: open::OpenAsks::default(),
        events: Events::new(run, caps.kept_events, caps.kept_event_bytes),
        surfaces: Arc::new(surfaces::Surfaces::new(Arc::clone(&settings.clock))),
        flags,
        agents: Agents::default(),
        metrics: metrics::Metrics::default(),
        changed_sessions: watch::Sender::default(),
        pepper: ids::random()?,
        shutdown: CancellationToken::new(),
        tasks: TaskTracker::new(),
        settings,
    });
    let public_name = app.settings.public_name.clone();
    // Apart, so that whoever fills the port keeps nobody off the socket, which only our own user reaches.
    let (door, door_inside) = (
        door::Door::new(caps.connections, caps.strangers),
        door::Door::new(caps.connections, caps.strangers),
    );
    let outside = routes::router(Arc::clone(&app), Walls { public_name, local_socket: false });
    let inside = routes::router(Arc::clone(&app), Walls { public_name: None, local_socket: true });
    app.tasks.spawn(net::accept_tcp(Arc::clone(&app), listener, outside, door));
    app.tasks.spawn(net::accept_local(Arc::clone(&app), local, inside, door_inside));
    let outbox = tokio::spawn(publish::drain_outbox(Arc::clone(&app), left_to_send));
    app.tasks.spawn(publish::tell_sessions(Arc::clone(&app)));
    app.tasks.spawn(sweep::run(Arc::clone(&app)));
    app.tasks.spawn(sweep::checkpoint(Arc::clone(&app)));
    app.tasks.spawn(sweep::expire_tokens(Arc::clone(&app)));
    tracing::info!(inbox.url = url, inbox.socket = %socket.display(), page.built = page::is_built(), "the inbox is up");
    ready(Ready { url, address, socket: socket.clone(), sign_in_secret });

    shutdown.await;
    tracing::info!("the inbox goes down");
    if tokio::time::timeout(app.settings.timing.drain, app.agents.stop()).await.is_err() {
        tracing::warn!("some agents did not end in time");
    }
    app.shutdown.cancel();
    app.tasks.close();
    if tokio::time::timeout(app.settings.timing.drain, app.tasks.wait()).await.is_err() {
        tracing::warn!("some connections did not end in time");
    } else if matches!(outbox.await, Ok(true))
        && let Err(error) = app.store.sent(i64::MAX).await
    {
        // Everybody has said what they had to say, so all of it is sent.
        tracing::error!(%error, "the outbox could not be emptied");
    }
    // A file that nobody listens on would only make programs wait for an error.
    let _ = std::fs::remove_file(&socket);
    app.store.close().await;
    drop(lock);
    Ok(())
}

/// Makes a token in the database of an inbox that is not running: `handraise token create` before the first `up`.
///
/// # Errors
/// When an inbox runs on the data directory, the database cannot be used, or the name is none.
pub async fn create_token(
    data_dir: &Path,
    wanted: &CreateToken,
    clock: SharedClock,
) -> Result<CreatedToken, ServeError> {
    handraise_store::prepare(data_dir)?;
    let lock = local::lock(data_dir)?;
    let (store, _) = Store::open(data_dir, &boot(), now(&clock)).await?;
    let access = Access::load(store.clone(), clock, Timing::default().page_session).await?;
    let created = access.create(wanted).await.map_err(|failure| ServeError::Refused(failure.message()));
    store.close().await;
    drop(lock);
    created.map(|(id, token)| CreatedToken { id, token })
}

/// Where this machine's own browser reaches a listener: one on every address is reached on loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn now(clock: &SharedClock) -> Now {
    Now { wall: clock.wall(), boot: Moment::from_millis(clock.boot_millis()) }
}

/// Names this boot of the machine. Where it has no name, every start counts as one after a reboot: deadlines are then
/// carried over by the wall clock.
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| ids::mint(), |id| id.trim().to_owned())
}
