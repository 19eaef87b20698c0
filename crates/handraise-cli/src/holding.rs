//! How the commands that ask reach the inbox that they hold their asks for.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use handraise_api::words::{HolderKind, Who};
use handraise_config::{ConfigError, Sourced, lists as config};
use handraise_holder::{ConnectError, Holder, HolderSettings, InboxAddress, Timing, Token};
use handraise_transport::clock::SystemClock;

use crate::{
    Context,
    local::{self, Commands},
};

/// What says where the inbox is.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    named: Option<Sourced<String>>,
    token: Option<Token>,
    data_dir: Option<PathBuf>,
    commands: Commands,
}

impl Place {
    /// By the settings.
    pub(crate) fn of(context: &Context) -> Self {
        let settings = &context.settings;
        Self {
            named: settings.inbox.clone(),
            token: settings.token.as_ref().map(|token| Token::new(token.expose())),
            data_dir: settings.data_dir.clone(),
            commands: context.commands.clone(),
        }
    }

    /// Whether one was named, and not that of the data directory is meant.
    pub(crate) fn is_named(&self) -> bool {
        self.named.is_some()
    }

    /// The inbox to hold asks for, and the token for it; `None` when the settings say that nobody is to be asked.
    ///
    /// # Errors
    /// When no inbox is known. `otherwise` is what the command can do without one, for the message.
    pub(crate) fn inbox(&self, otherwise: &str) -> anyhow::Result<Option<(InboxAddress, Token)>> {
        let Some(named) = &self.named else { return self.local(otherwise).map(Some) };
        if named.value == "none" {
            return Ok(None);
        }
        let address: InboxAddress = named.value.parse().with_context(|| named.origin.to_string())?;
        if let Some(token) = &self.token {
            return Ok(Some((address, token.clone())));
        }
        // A token that an inbox left on this machine is for that inbox alone.
        let file =
            self.data_dir.as_deref().map(|folder| local::read(folder, &self.commands)).transpose()?.flatten();
        match file {
            Some(file)
                if file.url == address.to_string()
                    || InboxAddress::Socket(file.socket.clone()) == address =>
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
    fn local(&self, otherwise: &str) -> anyhow::Result<(InboxAddress, Token)> {
        let data_dir = self.data_dir.as_deref().ok_or(ConfigError::NoDataDirectory)?;
        match local::read(data_dir, &self.commands)? {
            Some(file) => {
                let own = || Token::new(file.holder_token);
                Ok((InboxAddress::Socket(file.socket), self.token.clone().unwrap_or_else(own)))
            }
            None => bail!(
                "no inbox has run in {}; start one with {}, or name one with --inbox URL{otherwise}",
                data_dir.display(),
                self.commands.quoted("up")
            ),
        }
    }
}

/// The inbox of the data directory.
///
/// # Errors
/// When none has run there. `otherwise` as for [`inbox`].
pub(crate) fn local_inbox(context: &Context, otherwise: &str) -> anyhow::Result<(InboxAddress, Token)> {
    Place { token: None, ..Place::of(context) }.local(otherwise)
}

/// The inbox to hold asks for, and the token for it; `None` when the settings say that nobody is to be asked.
///
/// # Errors
/// When no inbox is known. `otherwise` is what the command can do without one, for the message.
pub(crate) fn inbox(context: &Context, otherwise: &str) -> anyhow::Result<Option<(InboxAddress, Token)>> {
    Place::of(context).inbox(otherwise)
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
