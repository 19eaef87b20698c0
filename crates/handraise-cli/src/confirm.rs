//! Guarded calls: the tables of the config file, the variables of the environment, and the store of spent nonces.

use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use handraise_config::{ConfirmEntry, ConfirmVariables, Require, Secret, Settings, Who};
use handraise_mcp::{
    confirm::{
        Answerers, ConfirmConfig, GuardSource, Guards, PreviewSource, Remembers, Secrets, Values, Warning,
        shared_folder,
    },
    seal::Keyring,
};
use handraise_spent::Store;
use handraise_transport::ids;

/// How guarded calls are confirmed, and where is kept what has confirmed one; nothing when nothing is guarded.
pub(crate) fn confirm(
    settings: &Settings,
    keyring: &Keyring,
) -> anyhow::Result<(Option<ConfirmConfig>, Option<Store>)> {
    if settings.confirms.is_empty() {
        return Ok((None, None));
    }
    let guards = guards(&settings.confirms)?;
    let (store, remembers) = store(settings);
    let values = values(&settings.confirm_variables);
    let (config, warnings) = ConfirmConfig::new(guards, values, keyring.clone(), ids::random()?, remembers);
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    Ok((Some(config), Some(store)))
}

/// What is strange about the variables. Nothing is made and nothing is kept.
///
/// # Errors
/// When a table cannot be used.
pub(crate) fn look(settings: &Settings) -> anyhow::Result<Vec<Warning>> {
    let random = ids::random()?;
    let (guards, values) = (guards(&settings.confirms)?, values(&settings.confirm_variables));
    let keyring = Keyring::single(&random);
    Ok(ConfirmConfig::new(guards, values, keyring, random, Remembers::InProcess).1)
}

fn values(variables: &ConfirmVariables) -> Values<'_> {
    Values {
        mode: variables.mode.as_deref(),
        elicitation: variables.elicitation.as_deref(),
        ttl: variables.ttl.as_deref(),
        secrets: Secrets {
            own: variables.secret.as_ref().map(Secret::expose),
            host: variables.host_secret.as_ref().map(Secret::expose),
            data_dir: variables.data_dir.as_deref(),
        },
    }
}

fn guards(entries: &[ConfirmEntry]) -> anyhow::Result<Guards> {
    let sources = entries.iter().map(source).collect();
    Guards::new(sources)
        .map_err(|(number, error)| anyhow!("number {number}: {error}"))
        .context("a [[confirm]] of the config file cannot be used")
}

fn source(entry: &ConfirmEntry) -> GuardSource {
    GuardSource {
        tools: entry.tools.clone(),
        except: entry.except.clone(),
        action: entry.action.clone(),
        account: entry.account.clone(),
        target: entry.target.clone(),
        preview: entry.preview.as_ref().map(|preview| PreviewSource {
            tool: preview.tool.clone(),
            arguments: preview.arguments.clone(),
            revision: preview.revision.clone(),
            is_trusted: preview.trusted,
        }),
        needs_human: entry.require == Require::Human,
        who: match entry.who {
            Who::Operator => Answerers::Operator,
            Who::Caller => Answerers::Caller,
            Who::NotTheCaller => Answerers::NotTheCaller,
        },
    }
}

/// Where spent nonces are kept: a folder, and those down from it. Nothing where there is no data directory.
pub(crate) fn folder(settings: &Settings) -> Option<(PathBuf, [&'static str; 2])> {
    let shared = shared_folder(settings.confirm_variables.data_dir.as_deref());
    match (shared, &settings.data_dir) {
        (Some(shared), _) => Some((shared.clone(), [".mcp-confirm", "spent"])),
        (None, Some(own)) => Some((own.clone(), ["confirm", "spent"])),
        (None, None) => None,
    }
}

/// The store, and how long it remembers. A folder that cannot be used is no reason for another one: nothing runs then.
fn store(settings: &Settings) -> (Store, Remembers) {
    let Some((base, inner)) = folder(settings) else {
        tracing::warn!(
            "there is no data directory: what has confirmed a call is remembered by this process only"
        );
        return (Store::memory(), Remembers::InProcess);
    };
    match Store::files(&base, &inner) {
        Ok(store) => (store, Remembers::Beyond),
        Err(error) => {
            tracing::error!("guarded calls will not run: {error}");
            (Store::closed(), Remembers::Nothing)
        }
    }
}
