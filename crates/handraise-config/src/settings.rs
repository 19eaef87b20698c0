//! Flag > environment > file > default, for every setting.

mod reader;
mod strange;

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    duration,
    environment::Environment,
    error::ConfigError,
    file::{ConfigFile, Place},
    lists::{self, AgentEntry, CallerEntry, ConfirmEntry, McpServerEntry, RefusalEntry, Who},
    registry::{self, Setting},
    value::{Raw, Secret},
};

use reader::Reader;
use strange::strange_variables;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The registry.
    Default,
    /// The config file.
    File {
        /// The setting.
        key: &'static str,
        /// Where it stands.
        place: Place,
    },
    /// This environment variable.
    Environment(String),
    /// This flag.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("the default"),
            Self::File { key, place } => write!(f, "'{key}' in {place}"),
            Self::Environment(name) => f.write_str(name),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

/// A value and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Where it comes from.
    pub origin: Origin,
}

/// The values that came by flag, as text, by the setting's key.
#[derive(Debug, Clone, Default)]
pub struct Flags(BTreeMap<&'static str, String>);

impl Flags {
    /// Notes a flag's value, when it was given.
    #[must_use]
    pub fn with(mut self, setting: &'static Setting, value: Option<impl Into<String>>) -> Self {
        if let Some(value) = value {
            self.0.insert(setting.key, value.into());
        }
        self
    }

    /// A setting's value, when it was given.
    pub fn value(&self, setting: &Setting) -> Option<&str> {
        self.0.get(setting.key).map(String::as_str)
    }
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// What the command line or the environment says, for what is to be told before the config file was read.
    pub fn before_the_file(flags: &Flags, environment: &Environment) -> Self {
        let setting = &registry::LOG_FORMAT;
        let variables = setting.variables();
        let mut variables = variables.iter().filter_map(|name| environment.get(name));
        match flags.value(setting).map(OsStr::new).or_else(|| variables.next()) {
            Some(format) if format == "json" => Self::Json,
            Some(_) | None => Self::Text,
        }
    }
}

/// In which order an agent's questions stand (form.md, "Order").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionOrder {
    /// As sent, a numbered series by number.
    Wire,
    /// By key, everywhere.
    Sorted,
}

/// What an inbox takes from one holder (acp.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Open asks in all.
    pub open_asks: u32,
    /// Bytes of open asks in all.
    pub open_bytes: u64,
    /// Open asks of one session.
    pub session_open_asks: u32,
    /// Parked asks of one session.
    pub session_parked_asks: u32,
    /// Asks in a second.
    pub asks_per_second: u32,
}

/// What an inbox takes from everything that comes with one token, and from all readers (S37).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// Open asks of a holder token.
    pub token_open_asks: u32,
    /// Asks of a holder token, ended ones included.
    pub token_asks: u32,
    /// Bytes of asks and transcripts of a holder token.
    pub token_bytes: u64,
    /// Sessions of a holder token.
    pub token_sessions: u32,
    /// Instances of a holder token.
    pub token_instances: u32,
    /// Event streams in all.
    pub event_streams: u32,
    /// Event streams of one token and its pages.
    pub token_event_streams: u32,
    /// Bytes of the database in the memory of each connection to it.
    pub cache_bytes: u64,
}

/// What the environment says about confirmations, under the names of the programs that share it. As it was written: what
/// cannot be read fails closed, with a warning, and is no error.
#[derive(Debug, Clone, Default)]
pub struct ConfirmVariables {
    /// What a token is good for.
    pub mode: Option<String>,
    /// Whether callers that take forms are asked with one.
    pub elicitation: Option<String>,
    /// How long tokens live, in seconds.
    pub ttl: Option<String>,
    /// What signs them.
    pub secret: Option<Secret>,
    /// What signs them otherwise, where there is a shared folder.
    pub host_secret: Option<Secret>,
    /// The shared folder.
    pub data_dir: Option<String>,
}

impl ConfirmVariables {
    fn of(environment: &Environment) -> Self {
        let text = |name| environment.get(name).map(|value| value.to_string_lossy().into_owned());
        Self {
            mode: text("MCP_CONFIRM_MODE"),
            elicitation: text("MCP_CONFIRM_ELICITATION"),
            ttl: text("MCP_CONFIRM_TTL_SECONDS"),
            secret: text("MCP_CONFIRM_SECRET").map(Secret::new),
            host_secret: text("MCP_HOST_CONFIRM_SECRET").map(Secret::new),
            data_dir: text("MCP_DATA_DIR"),
        }
    }
}

/// What `handraise mcp --listen` needs to know about those who call it.
#[derive(Debug, Clone)]
pub struct Listening {
    /// The certificate chain.
    pub tls_cert: Option<PathBuf>,
    /// Its private key.
    pub tls_key: Option<PathBuf>,
    /// Names by which it may be called, beside loopback names.
    pub allowed_hosts: Vec<String>,
    /// Origins whose pages may use it, beside its own.
    pub allowed_origins: Vec<String>,
    /// Who may call.
    pub callers: Vec<CallerEntry>,
    /// Legacy sessions.
    pub sessions: usize,
    /// How long a session lives that nobody uses.
    pub session_idle: Duration,
    /// Server processes.
    pub children: usize,
    /// Events that a session keeps.
    pub replay_events: usize,
    /// Bytes of them.
    pub replay_bytes: usize,
    /// Subscriptions of one principal.
    pub subscriptions: usize,
    /// Connections.
    pub connections: usize,
}

/// Every setting, judged.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where `up` listens.
    pub listen: SocketAddr,
    /// Whether a proxy in front of `listen` speaks TLS.
    pub insecure_behind_proxy: bool,
    /// The name under which browsers reach the inbox.
    pub public_name: Option<String>,
    /// Where data lives; `None` without a home directory.
    pub data_dir: Option<PathBuf>,
    /// The database, when one is named.
    pub database_url: Option<Sourced<Secret>>,
    /// Whether `up` opens a browser.
    pub open_browser: bool,
    /// The inbox to talk to, when one is named.
    pub inbox: Option<Sourced<String>>,
    /// The token for it.
    pub token: Option<Secret>,
    /// What is logged.
    pub log: Sourced<String>,
    /// How.
    pub log_format: LogFormat,
    /// Withheld variables that children get nevertheless.
    pub pass_env: Vec<String>,
    /// The flag `elicitation`.
    pub elicitation: Sourced<bool>,
    /// The flag `features.acpElicitation`.
    pub acp_elicitation: Sourced<bool>,
    /// The flag `profiles.adaptive`.
    pub adaptive_profiles: Sourced<bool>,
    /// How long a question waits; less than `idle_timeout` (F13a).
    pub answer_timeout: Duration,
    /// How long a silent agent lives.
    pub idle_timeout: Duration,
    /// Whose answers to what holders ask here count.
    pub who: Who,
    /// In which order questions stand.
    pub question_order: QuestionOrder,
    /// Whether agents may have commands run.
    pub allow_terminal: bool,
    /// What an inbox takes from one holder.
    pub limits: Limits,
    /// What it takes from everything that comes with one token.
    pub shares: Shares,
    /// The keys that sign states, as they are written; the gateway judges them.
    pub state_secret: Option<Sourced<Secret>>,
    /// How long a question about a refusal waits in the client.
    pub ask_timeout: Duration,
    /// What is answered faster was answered by no human.
    pub ask_min_human: Duration,
    /// How long a call waits for the inbox.
    pub ask_wait: Duration,
    /// The same of one whose client takes progress.
    pub ask_wait_with_progress: Duration,
    /// How long the calls of one session wait for it in all.
    pub ask_max_blocked: Duration,
    /// The rails of a refusal's question, in their order; the gateway judges them.
    pub rails_refusal: Sourced<Vec<String>>,
    /// The same of a guarded call.
    pub rails_confirm: Sourced<Vec<String>>,
    /// The longest frame of the gateway, in bytes.
    pub max_frame: usize,
    /// Bytes of calls that the gateway keeps.
    pub in_flight: u64,
    /// Who may call the gateway over HTTP, and how often.
    pub listening: Listening,
    /// What every request to `--upstream` carries.
    pub upstream_headers: BTreeMap<String, Secret>,
    /// The refusals that become questions, besides the built-in one.
    pub refusals: Vec<RefusalEntry>,
    /// The tools whose calls wait for a confirmation.
    pub confirms: Vec<ConfirmEntry>,
    /// What the environment says about confirmations.
    pub confirm_variables: ConfirmVariables,
    /// The agents that `up` starts.
    pub agents: Vec<AgentEntry>,
    /// The MCP servers that agents are told of.
    pub mcp_servers: Vec<McpServerEntry>,
    /// Things to say in the log: variables that look like settings and are none.
    pub warnings: Vec<String>,
}

impl Settings {
    /// The data directory.
    ///
    /// # Errors
    /// When none is named and there is no home directory to make one in.
    pub fn data_dir(&self) -> Result<&Path, ConfigError> {
        self.data_dir.as_deref().ok_or(ConfigError::NoDataDirectory)
    }
}

/// Puts the sources together.
///
/// # Errors
/// When a value does not fit its setting, whoever gave it and whether or not it wins, or when the answer timeout
/// is not below the idle timeout (F13a).
pub fn load(
    flags: &Flags,
    environment: &Environment,
    file: Option<&ConfigFile>,
) -> Result<Settings, ConfigError> {
    let home = environment.home();
    let reader = Reader { flags, environment, file, home: home.as_deref() };
    reader.check_all()?;

    let answer_timeout = reader.required(&registry::ANSWER_TIMEOUT, Raw::duration)?;
    let idle_timeout = reader.required(&registry::IDLE_TIMEOUT, Raw::duration)?;
    if answer_timeout.value >= idle_timeout.value {
        return Err(ConfigError::AnswerOutlivesAgent {
            answer: duration::format(answer_timeout.value),
            answer_origin: Box::new(answer_timeout.origin),
            idle: duration::format(idle_timeout.value),
            idle_origin: Box::new(idle_timeout.origin),
        });
    }
    let data_dir = reader
        .optional(&registry::DATA_DIR, |raw| raw.path(reader.home))?
        .map(|dir| dir.value)
        .or_else(|| environment.data_home().map(|home| home.join("handraise")));
    let count = |setting| reader.integer(setting).map(|count| u32::try_from(count).unwrap_or(u32::MAX));

    Ok(Settings {
        listen: reader.required(&registry::LISTEN, Raw::address)?.value,
        insecure_behind_proxy: reader.required(&registry::INSECURE_BEHIND_PROXY, Raw::bool)?.value,
        public_name: reader.optional(&registry::PUBLIC_NAME, Raw::text)?.map(|name| name.value),
        data_dir,
        database_url: reader.optional(&registry::DATABASE_URL, |raw| raw.text().map(Secret::new))?,
        open_browser: reader.required(&registry::OPEN_BROWSER, Raw::bool)?.value,
        inbox: reader.optional(&registry::INBOX, Raw::text)?,
        token: reader.optional(&registry::TOKEN, Raw::text)?.map(|token| Secret::new(token.value)),
        log: reader.required(&registry::LOG, Raw::text)?,
        log_format: match reader.word(&registry::LOG_FORMAT)? {
            "json" => LogFormat::Json,
            _ => LogFormat::Text,
        },
        pass_env: reader
            .optional(&registry::PASS_ENV, Raw::names)?
            .map(|names| names.value)
            .unwrap_or_default(),
        elicitation: reader.required(&registry::ELICITATION, Raw::bool)?,
        acp_elicitation: reader.required(&registry::ACP_ELICITATION, Raw::bool)?,
        adaptive_profiles: reader.required(&registry::ADAPTIVE_PROFILES, Raw::bool)?,
        answer_timeout: answer_timeout.value,
        idle_timeout: idle_timeout.value,
        who: match reader.word(&registry::WHO)? {
            "caller" => Who::Caller,
            "not-the-caller" => Who::NotTheCaller,
            _ => Who::Operator,
        },
        question_order: match reader.word(&registry::QUESTION_ORDER)? {
            "sorted" => QuestionOrder::Sorted,
            _ => QuestionOrder::Wire,
        },
        allow_terminal: reader.required(&registry::ALLOW_TERMINAL, Raw::bool)?.value,
        state_secret: reader.optional(&registry::STATE_SECRET, |raw| raw.text().map(Secret::new))?,
        ask_timeout: Duration::from_millis(reader.integer(&registry::ASK_TIMEOUT)?),
        ask_min_human: Duration::from_millis(reader.integer(&registry::ASK_MIN_HUMAN)?),
        ask_wait: reader.required(&registry::ASK_WAIT, Raw::duration)?.value,
        ask_wait_with_progress: reader.required(&registry::ASK_WAIT_WITH_PROGRESS, Raw::duration)?.value,
        ask_max_blocked: reader.required(&registry::ASK_MAX_BLOCKED, Raw::duration)?.value,
        rails_refusal: reader.required(&registry::RAILS_REFUSAL, Raw::names)?,
        rails_confirm: reader.required(&registry::RAILS_CONFIRM, Raw::names)?,
        max_frame: usize::try_from(reader.integer(&registry::MAX_FRAME)?).unwrap_or(usize::MAX),
        in_flight: reader.integer(&registry::IN_FLIGHT)?,
        listening: reader.listening()?,
        upstream_headers: file.map(lists::upstream_headers).transpose()?.unwrap_or_default(),
        refusals: file.map(lists::refusals).transpose()?.unwrap_or_default(),
        confirms: file.map(lists::confirms).transpose()?.unwrap_or_default(),
        confirm_variables: ConfirmVariables::of(environment),
        limits: Limits {
            open_asks: count(&registry::OPEN_ASKS)?,
            open_bytes: reader.integer(&registry::OPEN_BYTES)?,
            session_open_asks: count(&registry::SESSION_OPEN_ASKS)?,
            session_parked_asks: count(&registry::SESSION_PARKED_ASKS)?,
            asks_per_second: count(&registry::ASKS_PER_SECOND)?,
        },
        shares: Shares {
            token_open_asks: count(&registry::TOKEN_OPEN_ASKS)?,
            token_asks: count(&registry::TOKEN_ASKS)?,
            token_bytes: reader.integer(&registry::TOKEN_BYTES)?,
            token_sessions: count(&registry::TOKEN_SESSIONS)?,
            token_instances: count(&registry::TOKEN_INSTANCES)?,
            event_streams: count(&registry::EVENT_STREAMS)?,
            token_event_streams: count(&registry::TOKEN_EVENT_STREAMS)?,
            cache_bytes: reader.integer(&registry::CACHE_BYTES)?,
        },
        agents: file.map(|file| lists::agents(file, reader.home)).transpose()?.unwrap_or_default(),
        mcp_servers: file.map(lists::mcp_servers).transpose()?.unwrap_or_default(),
        warnings: strange_variables(environment),
    })
}

impl Reader<'_> {
    fn listening(&self) -> Result<Listening, ConfigError> {
        let path = |setting| Ok(self.optional(setting, |raw| raw.path(self.home))?.map(|path| path.value));
        let names =
            |setting| Ok(self.optional(setting, Raw::names)?.map(|names| names.value).unwrap_or_default());
        let size = |setting| Ok(usize::try_from(self.integer(setting)?).unwrap_or(usize::MAX));
        Ok(Listening {
            tls_cert: path(&registry::TLS_CERT)?,
            tls_key: path(&registry::TLS_KEY)?,
            allowed_hosts: names(&registry::MCP_HOSTS)?,
            allowed_origins: names(&registry::MCP_ORIGINS)?,
            callers: self.file.map(lists::callers).transpose()?.unwrap_or_default(),
            sessions: size(&registry::MCP_SESSIONS)?,
            session_idle: self.required(&registry::MCP_SESSION_IDLE, Raw::duration)?.value,
            children: size(&registry::MCP_CHILDREN)?,
            replay_events: size(&registry::MCP_REPLAY_EVENTS)?,
            replay_bytes: size(&registry::MCP_REPLAY_BYTES)?,
            subscriptions: size(&registry::MCP_SUBSCRIPTIONS)?,
            connections: size(&registry::MCP_CONNECTIONS)?,
        })
    }
}

#[cfg(test)]
mod tests;
