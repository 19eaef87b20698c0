//! Everything that `handraise up` tells the inbox, and what it hears back.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf, time::Duration};

use handraise_api::{access::FlagSource, frame::Limits};
use handraise_store::{Bounds, CACHE_BYTES};
use handraise_transport::{
    clock::{SharedClock, SystemClock},
    spawn::Supervisor,
};

/// How an inbox runs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the database, the socket and `inbox.json` are; made with mode 0700 when it is not there.
    pub data_dir: PathBuf,
    /// Where browsers reach it. Port 0 takes a free one.
    pub listen: SocketAddr,
    /// A name, other than a loopback name, that requests may carry in `Host`; without port.
    pub public_name: Option<String>,
    /// Whether a proxy in front terminates TLS. Without it only loopback addresses are listened on (S10).
    pub insecure_behind_proxy: bool,
    /// The runtime flags as configuration has them; an operator's setting in the inbox wins.
    pub flags: FlagSettings,
    /// What is taken from one holder.
    pub limits: Limits,
    /// Bounds on what all clients together may use (S37).
    pub caps: Caps,
    /// How long things may take.
    pub timing: Timing,
    /// `[[agent]]`: the agents that `POST /sessions` may start.
    pub agents: Vec<AgentSettings>,
    /// How an agent is started; without it `POST /sessions` is refused.
    pub launcher: Option<Launcher>,
    /// Both clocks.
    pub clock: SharedClock,
}

impl Settings {
    /// An inbox with everything at its default.
    pub fn new(data_dir: impl Into<PathBuf>, listen: SocketAddr) -> Self {
        Self {
            data_dir: data_dir.into(),
            listen,
            public_name: None,
            insecure_behind_proxy: false,
            flags: FlagSettings::default(),
            limits: DEFAULT_LIMITS,
            caps: Caps::default(),
            timing: Timing::default(),
            agents: Vec::new(),
            launcher: None,
            clock: SystemClock::shared(),
        }
    }
}

impl Settings {
    /// What a holder may have in the database.
    pub(crate) const fn bounds(&self) -> Bounds {
        Bounds {
            open_asks: self.limits.open_asks,
            open_bytes: self.limits.open_bytes,
            session_open_asks: self.limits.session_open_asks,
            token_open_asks: self.caps.token_open_asks,
            token_asks: self.caps.token_asks,
            token_bytes: self.caps.token_bytes,
            token_sessions: self.caps.token_sessions,
            token_instances: self.caps.token_instances,
        }
    }
}

/// acp.md, "Holder stream": what one holder may have open.
pub const DEFAULT_LIMITS: Limits = Limits {
    open_asks: 1_000,
    open_bytes: 64 * 1024 * 1024,
    session_open_asks: 50,
    session_parked_asks: 16,
    asks_per_second: 10,
};

/// One runtime flag as configuration has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlagSetting {
    /// Its value.
    pub value: bool,
    /// `Default`, `File` or `Environment`.
    pub source: FlagSource,
}

impl FlagSetting {
    const fn default_is(value: bool) -> Self {
        Self { value, source: FlagSource::Default }
    }
}

/// The runtime flags (inbox.md, "Flags").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlagSettings {
    /// `features.acpElicitation`.
    pub acp_elicitation: FlagSetting,
    /// `elicitation`: off in either place wins.
    pub elicitation: FlagSetting,
    /// `profiles.adaptive`.
    pub adaptive_profiles: FlagSetting,
}

impl Default for FlagSettings {
    fn default() -> Self {
        Self {
            acp_elicitation: FlagSetting::default_is(true),
            elicitation: FlagSetting::default_is(true),
            adaptive_profiles: FlagSetting::default_is(false),
        }
    }
}

/// Bounds on what all clients together may use, and on what comes with one token (S37). Beyond each there is an error
/// and a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Open connections of any kind.
    pub connections: usize,
    /// Connections on which no good token was shown yet. Beyond, the oldest of them makes place.
    pub strangers: usize,
    /// Event streams.
    pub event_streams: usize,
    /// Event streams of one token and the pages that were signed in with it.
    pub token_event_streams: usize,
    /// Events kept for resuming streams.
    pub kept_events: usize,
    /// Bytes of events kept for resuming streams.
    pub kept_event_bytes: usize,
    /// Agents that this inbox started and that still run.
    pub agents: usize,
    /// Open asks of one holder token, whatever number of holders comes with it.
    pub token_open_asks: u32,
    /// Asks of one holder token that are kept, ended ones included.
    pub token_asks: u32,
    /// Bytes of the asks and transcripts of one holder token.
    pub token_bytes: u64,
    /// Sessions of one holder token that are kept.
    pub token_sessions: u32,
    /// Instances of one holder token that are kept.
    pub token_instances: u32,
    /// Bytes of the database that each of the five connections to it keeps in memory.
    pub cache_bytes: u64,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            connections: 4_096,
            strangers: 512,
            event_streams: 200,
            token_event_streams: 64,
            kept_events: 1_000,
            kept_event_bytes: 8 * 1024 * 1024,
            agents: 64,
            token_open_asks: 20_000,
            token_asks: 1_000_000,
            token_bytes: 4 * 1024 * 1024 * 1024,
            token_sessions: 10_000,
            token_instances: 100_000,
            cache_bytes: CACHE_BYTES,
        }
    }
}

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How long a holder has to give its verdict on a submission (acp.md: 10 s).
    pub verdict: Duration,
    /// How long a holder may leave a submission without a word before its stream is ended, so that it is asked again.
    pub hang: Duration,
    /// How long after its deadline an ask is left to its holder's word before the inbox ends it itself.
    pub deadline_grace: Duration,
    /// How long asks of a lost holder are kept (inbox.md, "Rows": 24 h).
    pub lost_holder: Duration,
    /// How long a sign-in link is good (S11: 10 min).
    pub sign_in: Duration,
    /// How long a page session is good.
    pub page_session: Duration,
    /// How often expired things are looked for.
    pub sweep: Duration,
    /// How long a silent holder connection is kept.
    pub holder_silence: Duration,
    /// How long a connection has until the head of its first request is there.
    pub first_head: Duration,
    /// How long connections have to finish at shutdown.
    pub drain: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            verdict: Duration::from_secs(10),
            hang: Duration::from_secs(30),
            deadline_grace: Duration::from_secs(60),
            lost_holder: Duration::from_secs(24 * 60 * 60),
            sign_in: Duration::from_secs(10 * 60),
            page_session: Duration::from_secs(30 * 24 * 60 * 60),
            sweep: Duration::from_secs(5),
            holder_silence: Duration::from_secs(45),
            first_head: Duration::from_secs(5),
            drain: Duration::from_secs(2),
        }
    }
}

/// `[[agent]]`: an agent that the inbox may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSettings {
    /// What it is called, e.g. `claude-acp`.
    pub id: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Where it runs unless the request says otherwise.
    pub cwd: Option<PathBuf>,
}

/// How an agent is started: `PROGRAM ARGS… --agent-id ID --session-id UUID --cwd DIR -- COMMAND…`.
///
/// Prompts never go this way: they follow over the holder stream, because arguments are visible to every user.
#[derive(Debug, Clone)]
pub struct Launcher {
    /// Our own binary.
    pub program: PathBuf,
    /// E.g. `agent --data-dir DIR`.
    pub args: Vec<String>,
    /// All of its environment (S7).
    pub environment: Vec<(OsString, OsString)>,
    /// How the supervisor above it is started (S35).
    pub supervisor: Supervisor,
}

/// A running inbox, as its caller tells the operator.
///
/// `Debug` hides the sign-in secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Ready {
    /// Where browsers reach it, e.g. `http://127.0.0.1:7345`.
    pub url: String,
    /// The address it listens on.
    pub address: SocketAddr,
    /// The socket for holders and local tools.
    pub socket: PathBuf,
    /// The one-time sign-in secret, good for ten minutes (S11).
    pub sign_in_secret: String,
}

impl Ready {
    /// The sign-in link: the secret is in the fragment, which no browser sends anywhere (S11).
    pub fn sign_in_link(&self) -> String {
        format!("{}/#sign-in={}", self.url, self.sign_in_secret)
    }
}

impl std::fmt::Debug for Ready {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ready")
            .field("url", &self.url)
            .field("address", &self.address)
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}
