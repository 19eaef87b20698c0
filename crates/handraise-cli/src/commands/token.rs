//! `handraise token`: who may get in.
//!
//! While the inbox runs, it is asked; otherwise its database is opened directly.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use crate::offline;
use anyhow::{Context as _, bail};
use clap::Subcommand;
use handraise_api::{
    Timestamp,
    access::{CreateToken, CreatedToken, Scope, Token, TokenList},
};
use handraise_config::duration;
use handraise_transport::{
    clock::{Clock as _, SystemClock},
    escape,
};

use crate::{
    Context, Exit,
    inbox::{Inbox, Reached},
    local, output,
};

/// Make, list and revoke tokens
///
/// Makes, lists and revokes tokens: through the inbox while it runs, else directly in its database.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  handraise token create --scope operator --name phone\n  handraise token list\n  handraise token revoke 0192c9a4-7a3e-7b61-8a1e-3f7a1b2c3d4e"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Make a token and print it, alone, on stdout; it is shown this one time
    #[command(
        after_help = "Examples:\n  handraise token create --scope operator --name phone\n  handraise token create --scope holder --owner ada --expires 30d"
    )]
    Create {
        /// What it may do: viewer reads, operator also answers, admin also sessions, flags and tokens, holder only its stream
        #[arg(long, value_name = "SCOPE")]
        scope: Scope,
        /// What it is called; the scope's name otherwise
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// The person whose holder it is
        #[arg(long, value_name = "NAME")]
        owner: Option<String>,
        /// When it ends: a duration from now such as 30d, or a time such as 2027-01-31T00:00:00Z
        #[arg(long, value_name = "WHEN")]
        expires: Option<String>,
        /// The inbox's data directory
        #[arg(long, value_name = "DIR")]
        data_dir: Option<PathBuf>,
    },
    /// List tokens, the newest first; their secrets are not kept
    #[command(after_help = "Example:\n  handraise token list --json")]
    List {
        /// One JSON object with everything
        #[arg(long)]
        json: bool,
        /// The inbox's data directory
        #[arg(long, value_name = "DIR")]
        data_dir: Option<PathBuf>,
    },
    /// Revoke a token; what it opened ends within a second
    #[command(after_help = "Example:\n  handraise token revoke 0192c9a4-7a3e-7b61-8a1e-3f7a1b2c3d4e")]
    Revoke {
        /// The id that `handraise token list` shows
        #[arg(value_name = "ID")]
        id: String,
        /// The inbox's data directory
        #[arg(long, value_name = "DIR")]
        data_dir: Option<PathBuf>,
    },
}

impl Arguments {
    pub(crate) fn data_dir(&self) -> Option<&PathBuf> {
        match &self.action {
            Action::Create { data_dir, .. }
            | Action::List { data_dir, .. }
            | Action::Revoke { data_dir, .. } => data_dir.as_ref(),
        }
    }
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Exit {
    crate::block_on(async {
        let tokens = Tokens::open(context)?;
        match &arguments.action {
            Action::Create { scope, name, owner, expires, .. } => {
                let expires = expires.as_deref().map(|when| end(when, SystemClock.wall())).transpose()?;
                let new = CreateToken { scope: *scope, name: name.clone(), owner: owner.clone(), expires };
                let created = tokens.create(&new).await?;
                tracing::info!(token.id = created.id, "made a token");
                // Nobody has seen it, and nobody will: only its hash is kept.
                if let Err(error) = output::print(&created.token) {
                    bail!(
                        "{error}; the token {} was made, but nobody has it: revoke it with {} and make another",
                        created.id,
                        context.commands.quoted(&format!("token revoke {}", created.id))
                    );
                }
            }
            Action::List { json, .. } => {
                let list = tokens.list().await?;
                if *json {
                    output::print(&serde_json::to_string_pretty(&list)?)?;
                } else {
                    output::print(table(&list.tokens).trim_end())?;
                }
            }
            Action::Revoke { id, .. } => {
                if !tokens.revoke(id).await? {
                    bail!("no token has the id {id:?}; {} shows them", context.commands.quoted("token list"));
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The inbox, running or not.
struct Tokens {
    data_dir: PathBuf,
    inbox: Option<Inbox>,
}

impl Tokens {
    fn open(context: &Context) -> anyhow::Result<Self> {
        let data_dir = context.settings.data_dir()?.to_owned();
        let inbox = local::read(&data_dir, &context.commands)?.map(|file| Inbox::new(&file));
        Ok(Self { data_dir, inbox })
    }

    async fn create(&self, new: &CreateToken) -> anyhow::Result<CreatedToken> {
        if let Some(inbox) = &self.inbox
            && let Reached::Answer(created) = inbox.post("/api/v1/tokens", new).await?
        {
            return Ok(created);
        }
        Ok(handraise_server::create_token(&self.data_dir, new, SystemClock::shared()).await?)
    }

    async fn list(&self) -> anyhow::Result<TokenList> {
        if let Some(inbox) = &self.inbox
            && let Reached::Answer(list) = inbox.get("/api/v1/tokens").await?
        {
            return Ok(list);
        }
        offline::tokens(&self.data_dir).await
    }

    async fn revoke(&self, id: &str) -> anyhow::Result<bool> {
        // It becomes part of a path.
        if !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') || id.is_empty() {
            return Ok(false);
        }
        if let Some(inbox) = &self.inbox
            && let Reached::Answer(revoked) = inbox.delete(&format!("/api/v1/tokens/{id}")).await?
        {
            return Ok(revoked);
        }
        offline::revoke_token(&self.data_dir, id).await
    }
}

/// When a token ends: so long from now, or at a time.
fn end(when: &str, now: Timestamp) -> anyhow::Result<Timestamp> {
    let end = match duration::parse(when) {
        Ok(Duration::ZERO) => bail!("--expires is {when:?}: the token would be of no use"),
        Ok(span) => now.checked_add(span).with_context(|| format!("--expires is {when:?}, which is too far away"))?,
        Err(_) => when.parse().map_err(|_| {
            anyhow::anyhow!("--expires is {when:?}, but it takes a duration such as 30d or a time such as 2027-01-31T00:00:00Z")
        })?,
    };
    if end <= now {
        bail!("--expires is {when:?}, which has passed");
    }
    Ok(end)
}

/// The tokens for people.
fn table(tokens: &[Token]) -> String {
    let mut rows = vec![["ID", "NAME", "SCOPE", "OWNER", "MADE", "ENDS"].map(str::to_owned)];
    let day = |time: Timestamp| time.to_string().chars().take(16).collect::<String>();
    for token in tokens {
        rows.push([
            token.id.clone(),
            escape::line(&token.name).to_string(),
            if token.page_session { "page session".to_owned() } else { token.scope.as_str().to_owned() },
            token.owner.as_deref().map_or_else(|| "-".to_owned(), |owner| escape::line(owner).to_string()),
            day(token.created_at),
            token.expires_at.map_or_else(|| "-".to_owned(), day),
        ]);
    }
    let mut widths = [0; 6];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &[String; 6]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-29T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_token_ends_after_a_while_or_at_a_time() {
        assert_eq!(end("30d", now()).unwrap(), "2026-12-29T12:00:00Z".parse().unwrap());
        assert_eq!(end("2027-01-31T00:00:00Z", now()).unwrap(), "2027-01-31T00:00:00Z".parse().unwrap());
        for wrong in ["0s", "2020-01-01T00:00:00Z", "soon", ""] {
            let error = end(wrong, now()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--expires is {wrong:?}")), "{error}");
        }
    }

    #[test]
    fn s42_the_table_shows_what_a_name_hides() {
        let token = Token {
            id: "1".into(),
            name: "a\u{1b}[2J".into(),
            scope: Scope::Operator,
            owner: None,
            created_at: now(),
            expires_at: None,
            page_session: false,
        };
        assert_eq!(
            table(&[token]),
            "ID  NAME        SCOPE     OWNER  MADE              ENDS\n\
             1   a\\u{1b}[2J  operator  -      2026-11-29T12:00  -\n"
        );
    }
}
