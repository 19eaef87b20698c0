//! Every setting, in one table.

/// What values a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `on` or `off`; also `true`, `false`, `yes`, `no`, `1`, `0`.
    Bool,
    /// A duration such as `55m`.
    Duration,
    /// A whole number within bounds.
    Integer {
        /// The least.
        least: u64,
        /// The greatest.
        most: u64,
    },
    /// Any text.
    Text,
    /// A path; in the file absolute or below `~/`.
    Path,
    /// An IP address and a port.
    Address,
    /// One of a few words.
    Word(&'static [&'static str]),
    /// Names: a list in the file, separated by commas elsewhere.
    Names,
}

impl Kind {
    /// The kind in the words of the reference page.
    pub fn describe(self) -> String {
        match self {
            Self::Bool => "`on` or `off`".to_owned(),
            Self::Duration => "duration".to_owned(),
            Self::Integer { least, most } => format!("number, {least} to {most}"),
            Self::Text => "text".to_owned(),
            Self::Path => "path".to_owned(),
            Self::Address => "address and port".to_owned(),
            Self::Word(words) => {
                words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ")
            }
            Self::Names => "list of names".to_owned(),
        }
    }
}

/// What holds when nobody sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Default {
    /// This value, written as in the environment.
    Value(&'static str),
    /// Nothing; the words say what that means.
    Unset(&'static str),
}

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its key in the config file, with dots between tables.
    pub key: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What holds when nobody sets it.
    pub default: Default,
    /// The flag that sets it, if one does.
    pub flag: Option<&'static str>,
    /// Further environment variables, in the order in which they win; the one derived from the key wins over all.
    pub names: &'static [&'static str],
    /// Whether its value is kept out of errors and logs.
    pub is_secret: bool,
    /// One line about it.
    pub doc: &'static str,
}

impl Setting {
    /// The variable derived from the key: `HANDRAISE_` and the key in capitals, `__` between tables.
    pub fn variable(&self) -> String {
        format!("HANDRAISE_{}", self.key.to_ascii_uppercase().replace('.', "__"))
    }

    /// Whether an empty variable sets it: a shell's word for one that was never filled, which must not be taken for the
    /// wish to have what holds without it.
    pub fn takes_empty(&self) -> bool {
        self.key == STATE_SECRET.key
    }

    /// Every variable that sets it, in the order in which they win.
    pub fn variables(&self) -> Vec<String> {
        let mut names = vec![self.variable()];
        names
            .extend(self.names.iter().map(|name| (*name).to_owned()).filter(|name| *name != self.variable()));
        names
    }
}

/// Declares the settings as constants and collects them in [`SETTINGS`].
macro_rules! settings {
    ($($constant:ident = $key:literal, $kind:expr, $default:expr $(, flag $flag:literal)? $(, env $($name:literal)+)? $(, secret $secret:literal)?; $doc:literal)+) => {
        $(
            #[doc = $doc]
            pub const $constant: Setting = Setting {
                key: $key,
                kind: $kind,
                default: $default,
                flag: settings!(@flag $($flag)?),
                names: &[$($($name),+)?],
                is_secret: settings!(@secret $($secret)?),
                doc: $doc,
            };
        )+

        /// Every setting, in the order of the reference page.
        pub const SETTINGS: &[&Setting] = &[$(&$constant,)+];
    };
    (@flag) => { None };
    (@flag $flag:literal) => { Some($flag) };
    (@secret) => { false };
    (@secret $secret:literal) => { $secret };
}

settings! {
    LISTEN = "listen", Kind::Address, Default::Value("127.0.0.1:7345"), flag "--listen";
    "Where `handraise up` listens."

    INSECURE_BEHIND_PROXY = "insecure_behind_proxy", Kind::Bool, Default::Value("off"), flag "--insecure-behind-proxy";
    "Allows listening beyond loopback without TLS, because a proxy in front of it speaks TLS (S10). Read by `handraise up` and `handraise mcp --listen`."

    TLS_CERT = "tls_cert", Kind::Path, Default::Unset("no TLS"), flag "--tls-cert";
    "The certificate chain, PEM, with which `handraise mcp --listen` speaks TLS."

    TLS_KEY = "tls_key", Kind::Path, Default::Unset("no TLS"), flag "--tls-key";
    "The private key of `tls_cert`, PEM."

    PUBLIC_NAME = "public_name", Kind::Text, Default::Unset("loopback names only");
    "The host name, without a port, under which browsers reach the inbox besides loopback names. Requests for other names are refused."

    DATA_DIR = "data_dir", Kind::Path, Default::Unset("`$XDG_DATA_HOME/handraise`"), flag "--data-dir";
    "Where the inbox keeps its database and the files by which this machine's holders find it."

    DATABASE_URL = "database_url", Kind::Text, Default::Unset("SQLite in the data directory"), flag "--database", secret true;
    "The database. Only SQLite in the data directory is there so far: any other is refused at start."

    OPEN_BROWSER = "open_browser", Kind::Bool, Default::Value("on"), flag "--no-open";
    "Whether `handraise up` opens the sign-in link in a browser when it runs in a terminal."

    INBOX = "inbox", Kind::Text, Default::Unset("the inbox of the data directory"), flag "--inbox";
    "The inbox that a holder talks to: `https://host`, `http://127.0.0.1:7345`, `unix:/path/to/inbox.sock`, or `none`: nobody is asked, every question is declined. A gateway without one asks its client alone."

    TOKEN = "token", Kind::Text, Default::Unset("the token in the data directory"), secret true;
    "The bearer token for `inbox`. There is no flag for it: arguments can be read by everybody on the machine."

    WHO = "who", Kind::Word(&["operator", "caller", "not-the-caller"]), Default::Value("operator"), flag "--who";
    "Whose answers to the asks of `handraise agent` and `handraise ask` count: every operator's, only those of the owner of the holder's token, or only those of somebody else. Who an operator is says the owner of their token; where either token has none, no answer counts, and an ask of a token without an owner is declined at once: also what the agents ask that `handraise up` starts itself."

    LOG = "log", Kind::Text, Default::Value("info"), flag "--log";
    "What is logged: a level, or directives such as `info,handraise_server=debug`. Logs go to stderr."

    LOG_FORMAT = "log_format", Kind::Word(&["text", "json"]), Default::Value("text"), flag "--log-format";
    "How log lines are written."

    PASS_ENV = "pass_env", Kind::Names, Default::Unset("none");
    "Environment variables that agents and MCP servers get although they are withheld: `HANDRAISE_*`, `KANDEV_*`, `MCP_CONFIRM_*`, and URLs of databases and with passwords, save those of `http`, `https` and `socks` (S7)."

    ELICITATION = "elicitation", Kind::Bool, Default::Value("on"), env "HANDRAISE_ELICITATION" "AUTOMOBILE_ELICITATION";
    "Whether handraise asks its own questions about refusals: `off` lets refusals through, in every era. Read by `handraise mcp`, again on SIGHUP. The inbox has the same flag, which gateways hear of at once: off in either place wins."

    ACP_ELICITATION = "features.acp_elicitation", Kind::Bool, Default::Value("on"), env "HANDRAISE_FEATURES_ACP_ELICITATION" "KANDEV_FEATURES_ACP_ELICITATION";
    "The flag `features.acpElicitation`: agents are told that forms are answered here. Read by `handraise up` and handed to holders; an operator's setting in the inbox wins."

    ADAPTIVE_PROFILES = "profiles.adaptive", Kind::Bool, Default::Value("off");
    "The flag `profiles.adaptive`, as `handraise up` hands it to holders. It changes nothing yet: no rail is chosen by measurement."

    ANSWER_TIMEOUT = "acp.answer_timeout", Kind::Duration, Default::Value("55m"), env "HANDRAISE_ELICITATION_ANSWER_TIMEOUT" "KANDEV_ELICITATION_ANSWER_TIMEOUT";
    "How long an agent's question waits for a human; then it is declined. Read by `handraise agent`. Must be shorter than `acp.idle_timeout`."

    IDLE_TIMEOUT = "acp.idle_timeout", Kind::Duration, Default::Value("1h"), env "HANDRAISE_ACP_IDLE_TIMEOUT" "KANDEV_ACP_IDLE_TIMEOUT";
    "After how long without a word from an agent, and without an open question of it, the agent is stopped."

    QUESTION_ORDER = "acp.question_order", Kind::Word(&["wire", "sorted"]), Default::Value("wire");
    "`wire`: questions stand as the agent sent them, a numbered series by number. `sorted`: by key, numbers by value."

    ALLOW_TERMINAL = "acp.allow_terminal", Kind::Bool, Default::Value("off"), flag "--allow-terminal";
    "Whether agents may have `handraise agent` run commands, as its own user, without asking anybody (`terminal/create`). For the agents that `handraise up` starts, what its config file or environment says holds."

    STATE_SECRET = "state_secret", Kind::Text, Default::Unset("256 random bits per process"), secret true;
    "Signs the state that clients of the modern era carry between a question and its answer: keys of at least 32 characters, separated by commas; the first signs, all verify. The same keys in several processes let one take up what another has asked, also after a restart. An empty value, also of the variable, refuses the start. Read by `handraise mcp`."

    ASK_TIMEOUT = "ask.timeout_ms", Kind::Integer { least: 1, most: 3_600_000 }, Default::Value("20000"), env "HANDRAISE_ASK_TIMEOUT_MS";
    "How long a question of handraise's own waits in the client, in milliseconds from the arrival of its call; then it is withdrawn, and the refusal goes through, or the guarded call does not run. Read by `handraise mcp`."

    ASK_MIN_HUMAN = "ask.min_human_ms", Kind::Integer { least: 0, most: 60_000 }, Default::Value("400"), env "HANDRAISE_ASK_MIN_HUMAN_MS";
    "An answer that comes faster, in milliseconds, was given by no human: it is recorded as `not_shown`, and confirms no guarded call."

    ASK_WAIT = "ask.wait", Kind::Duration, Default::Value("45s"), env "HANDRAISE_ASK_WAIT";
    "How long a call waits for an answer of the inbox, from its arrival; then the refusal goes through. Shorter than the patience of the client's own tool calls. Read by `handraise mcp`."

    ASK_WAIT_WITH_PROGRESS = "ask.wait_with_progress", Kind::Duration, Default::Value("10m"), env "HANDRAISE_ASK_WAIT_WITH_PROGRESS";
    "The same of a call whose client takes progress: it is told every ten seconds that its call goes on."

    ASK_MAX_BLOCKED = "ask.max_blocked", Kind::Duration, Default::Value("15m"), env "HANDRAISE_ASK_MAX_BLOCKED";
    "How long the calls of one session wait for the inbox in all; waits at the same time count once. After that refusals go through at once."

    RAILS_REFUSAL = "rails.refusal", Kind::Names, Default::Value("form,inbox,refuse");
    "In which order a refusal's question is tried: `form` is the client's own prompt, `inbox` an operator, `refuse` the refusal as it was. What is left out is not tried. Read by `handraise mcp`."

    RAILS_CONFIRM = "rails.confirm", Kind::Names, Default::Value("form,inbox,token,refuse");
    "The same of a guarded call: `token` is a preview and a `confirmToken` in the chat. Once a form was sent there is no token, wherever it stands."

    MAX_FRAME = "mcp.max_frame_bytes", Kind::Integer { least: 65_536, most: 1_073_741_824 }, Default::Value("67108864");
    "The longest frame that `handraise mcp` passes on, in bytes. A longer one is thrown away, and whoever waits for it gets an error."

    IN_FLIGHT = "mcp.in_flight_bytes", Kind::Integer { least: 1_048_576, most: 17_179_869_184 }, Default::Value("268435456");
    "Bytes of calls that `handraise mcp` keeps, so that it could run them once more with an answer. A call that does not fit is passed on all the same, and not asked about. With `--listen` also the bytes of bodies, queues and answers; a request that does not fit is answered 503. In front of a URL as many bytes again of answers that are being read; one that does not fit ends its call with an error."

    MCP_HOSTS = "mcp.allowed_hosts", Kind::Names, Default::Unset("loopback names only");
    "Host names, without a port, under which clients reach `handraise mcp --listen` besides loopback names, and besides addresses when it listens beyond loopback. Requests for other names are refused."

    MCP_ORIGINS = "mcp.allowed_origins", Kind::Names, Default::Unset("its own origin only");
    "Origins, such as `http://localhost:6274`, whose pages may use `handraise mcp --listen`."

    MCP_SESSIONS = "mcp.sessions", Kind::Integer { least: 1, most: 100_000 }, Default::Value("256");
    "Legacy sessions that `handraise mcp --listen` has at the same time. Each has a server process of its own, so that `mcp.children` bounds them too."

    MCP_SESSION_IDLE = "mcp.session_idle", Kind::Duration, Default::Value("30m");
    "After how long a session, or the server of a principal's modern requests, is ended that nobody uses."

    MCP_CHILDREN = "mcp.children", Kind::Integer { least: 1, most: 100_000 }, Default::Value("64");
    "Server processes that `handraise mcp --listen` runs at the same time: one for each legacy session, and one for each principal's modern requests."

    MCP_REPLAY_EVENTS = "mcp.replay_events", Kind::Integer { least: 0, most: 1_000_000 }, Default::Value("1000");
    "Events that a legacy session keeps for a client that lost its stream and comes back with `Last-Event-ID`."

    MCP_REPLAY_BYTES = "mcp.replay_bytes", Kind::Integer { least: 0, most: 1_073_741_824 }, Default::Value("8388608");
    "Bytes of these events."

    MCP_SUBSCRIPTIONS = "mcp.subscriptions", Kind::Integer { least: 1, most: 100_000 }, Default::Value("64");
    "Open `subscriptions/listen` requests of one principal."

    MCP_CONNECTIONS = "mcp.connections", Kind::Integer { least: 4, most: 1_000_000 }, Default::Value("4096");
    "Connections to `handraise mcp --listen`. A quarter of them may be of clients that have not shown a good request yet."

    OPEN_ASKS = "limits.open_asks", Kind::Integer { least: 1, most: 1_000_000 }, Default::Value("1000");
    "Open asks that the inbox takes from one holder; beyond, the holder declines them."

    OPEN_BYTES = "limits.open_bytes", Kind::Integer { least: 65_536, most: 17_179_869_184 }, Default::Value("67108864");
    "Bytes of open asks that the inbox takes from one holder."

    SESSION_OPEN_ASKS = "limits.session_open_asks", Kind::Integer { least: 1, most: 1_000_000 }, Default::Value("50");
    "Open asks that the inbox takes from one session."

    SESSION_PARKED_ASKS = "limits.session_parked_asks", Kind::Integer { least: 1, most: 1_000_000 }, Default::Value("16");
    "Parked asks that the inbox takes from one session."

    ASKS_PER_SECOND = "limits.asks_per_second", Kind::Integer { least: 1, most: 1_000_000 }, Default::Value("10");
    "Asks that the inbox takes from one holder in a second."

    TOKEN_OPEN_ASKS = "limits.token_open_asks", Kind::Integer { least: 1, most: 10_000_000 }, Default::Value("20000");
    "Open asks that the inbox takes from all holders with one token; beyond, a holder declines its own."

    TOKEN_ASKS = "limits.token_asks", Kind::Integer { least: 1, most: 100_000_000 }, Default::Value("1000000");
    "Asks of one token that the inbox keeps, ended ones included; beyond, it takes no new ones until some are forgotten by age."

    TOKEN_BYTES = "limits.token_bytes", Kind::Integer { least: 65_536, most: 1_099_511_627_776 }, Default::Value("4294967296");
    "Bytes of asks and transcripts of one token that the inbox keeps."

    TOKEN_SESSIONS = "limits.token_sessions", Kind::Integer { least: 1, most: 10_000_000 }, Default::Value("10000");
    "Sessions of one token that the inbox keeps."

    TOKEN_INSTANCES = "limits.token_instances", Kind::Integer { least: 1, most: 10_000_000 }, Default::Value("100000");
    "Holders of one token that the inbox remembers: every `handraise ask` is one, for a week."

    EVENT_STREAMS = "limits.event_streams", Kind::Integer { least: 1, most: 100_000 }, Default::Value("200");
    "Pages and programs that may follow live events at the same time."

    TOKEN_EVENT_STREAMS = "limits.token_event_streams", Kind::Integer { least: 1, most: 100_000 }, Default::Value("64");
    "Of these, those of one token and of the pages that were signed in with it."

    CACHE_BYTES = "limits.cache_bytes", Kind::Integer { least: 65_536, most: 1_073_741_824 }, Default::Value("8388608");
    "How much of its database `handraise up` keeps in memory, in bytes, for each of five connections. They fill within hours of use, and grow no more."
}

/// Variables that are read but are no setting.
pub const OTHER_VARIABLES: &[(&str, &str)] = &[
    ("HANDRAISE_CONFIG", "The config file; `--config` wins."),
    ("XDG_CONFIG_HOME", "Where the config file is looked for when none is named; `~/.config` otherwise."),
    ("XDG_DATA_HOME", "Where the data directory is made when none is named; `~/.local/share` otherwise."),
    (
        "MCP_CONFIRM_MODE",
        "What a confirm token is good for: `ask-user` (default: the model shows the preview and asks), `auto` (it may use the token itself), `refuse` (there are none). Anything else is `refuse`.",
    ),
    (
        "MCP_CONFIRM_ELICITATION",
        "`off`: guarded calls are not asked about with a form, also where the client takes forms. Default `on`.",
    ),
    (
        "MCP_CONFIRM_TTL_SECONDS",
        "How long a confirm token lives; default 600. What is no such number gives no tokens.",
    ),
    (
        "MCP_CONFIRM_SECRET, MCP_HOST_CONFIRM_SECRET",
        "Signs confirm tokens, at least 32 characters; the second only with an absolute `MCP_DATA_DIR`. Otherwise random bytes of the process do.",
    ),
    (
        "MCP_DATA_DIR",
        "Where programs that share a secret keep spent confirmations (`.mcp-confirm/spent`); otherwise in the data directory (`confirm/spent`).",
    ),
    ("DISPLAY, WAYLAND_DISPLAY", "Whether a browser can be opened."),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_settings_share_a_key_a_variable_or_a_flag() {
        let mut seen = BTreeSet::new();
        for setting in SETTINGS {
            assert!(seen.insert(setting.key.to_owned()), "{}", setting.key);
            for name in setting.variables() {
                assert!(seen.insert(name.clone()), "{name}");
            }
            if let Some(flag) = setting.flag {
                assert!(seen.insert(flag.to_owned()), "{flag}");
            }
        }
    }

    #[test]
    fn every_default_fits_its_setting() {
        for setting in SETTINGS {
            if let Default::Value(value) = setting.default {
                assert_eq!(crate::value::Raw::Text(value).fits(setting, None), Ok(()), "{}", setting.key);
            }
        }
    }

    #[test]
    fn variables_follow_from_the_key() {
        assert_eq!(LISTEN.variable(), "HANDRAISE_LISTEN");
        assert_eq!(
            ACP_ELICITATION.variables(),
            [
                "HANDRAISE_FEATURES__ACP_ELICITATION",
                "HANDRAISE_FEATURES_ACP_ELICITATION",
                "KANDEV_FEATURES_ACP_ELICITATION"
            ]
        );
        assert_eq!(ELICITATION.variables(), ["HANDRAISE_ELICITATION", "AUTOMOBILE_ELICITATION"]);
    }
}
