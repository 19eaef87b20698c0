//! How the commands that ask reach the inbox that they hold their asks for.

use anyhow::{Context as _, bail};
use handraise_api::words::{HolderKind, Who};
use handraise_config::lists as config;
use handraise_holder::{ConnectError, Holder, HolderSettings, InboxAddress, Timing, Token};
use handraise_transport::clock::SystemClock;

use crate::{Context, local};

/// The inbox to hold asks for, and the token for it; `None` when the settings say that nobody is to be asked.
///
/// # Errors
/// When no inbox is known. `otherwise` is what the command can do without one, for the message.
pub(crate) fn inbox(context: &Context, otherwise: &str) -> anyhow::Result<Option<(InboxAddress, Token)>> {
    let settings = &context.settings;
    let token = settings.token.as_ref().map(|token| Token::new(token.expose()));
    let Some(named) = &settings.inbox else { return local_inbox(context, token, otherwise).map(Some) };
    if named.value == "none" {
        return Ok(None);
    }
    let address: InboxAddress = named.value.parse().with_context(|| named.origin.to_string())?;
    if let Some(token) = token {
        return Ok(Some((address, token)));
    }
    // A token that an inbox left on this machine is for that inbox alone.
    let file = settings
        .data_dir
        .as_deref()
        .map(|folder| local::read(folder, &context.commands))
        .transpose()?
        .flatten();
    match file {
        Some(file)
            if file.url == address.to_string() || InboxAddress::Socket(file.socket.clone()) == address =>
        {
            Ok(Some((address, Token::new(file.holder_token))))
        }
        _ => bail!(
            "{} names the inbox {address}, and there is no token for it; make one there with `handraise token create \
             --scope holder` and set HANDRAISE_TOKEN",
            named.origin
        ),
    }
}

/// The inbox of the data directory.
///
/// # Errors
/// When none has run there. `otherwise` as for [`inbox`].
pub(crate) fn local_inbox(
    context: &Context,
    token: Option<Token>,
    otherwise: &str,
) -> anyhow::Result<(InboxAddress, Token)> {
    let data_dir = context.settings.data_dir()?;
    match local::read(data_dir, &context.commands)? {
        Some(file) => {
            Ok((InboxAddress::Socket(file.socket), token.unwrap_or_else(|| Token::new(file.holder_token))))
        }
        None => bail!(
            "no inbox has run in {}; start one with {}, or name one with --inbox URL{otherwise}",
            data_dir.display(),
            context.commands.quoted("up")
        ),
    }
}

/// Dials the inbox for a holder of this kind.
///
/// # Errors
/// When it cannot be reached or does not take us.
pub(crate) async fn connect(
    context: &Context,
    kind: HolderKind,
    inbox: InboxAddress,
    token: Token,
) -> anyhow::Result<Holder> {
    let data_dir = context.settings.data_dir.as_deref();
    let is_local = matches!(&inbox, InboxAddress::Socket(socket) if socket.parent() == data_dir);
    match Holder::connect(settings(who(context), kind, inbox, token)).await {
        Ok(holder) => Ok(holder),
        Err(ConnectError::Unreachable { inbox, source }) if is_local => bail!(
            "cannot reach the inbox at {inbox}: {source}; is it running? Start it with {}",
            context.commands.quoted("up")
        ),
        Err(error) => Err(error.into()),
    }
}

/// Whose answers count, by the settings (S16).
fn who(context: &Context) -> Who {
    match context.settings.who {
        config::Who::Operator => Who::Operator,
        config::Who::Caller => Who::Caller,
        config::Who::NotTheCaller => Who::NotTheCaller,
    }
}

/// A holder of this kind, on this machine.
pub(crate) fn settings(who: Who, kind: HolderKind, inbox: InboxAddress, token: Token) -> HolderSettings {
    HolderSettings {
        inbox,
        token,
        kind,
        who,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        clock: SystemClock::shared(),
        timing: Timing::default(),
    }
}
