//! What children see of our environment (S7).

use std::ffi::{OsStr, OsString};

/// Names and beginnings of names: our own settings, those of the products whose names we also read, and confirm secrets.
const PREFIXES: [&str; 3] = ["HANDRAISE_", "KANDEV_", "MCP_CONFIRM_"];
const NAMES: [&str; 2] = ["AUTOMOBILE_ELICITATION", "MCP_HOST_CONFIRM_SECRET"];

/// The schemes of databases. A URL with one of them is withheld also without a password: it may be in the query.
const DATABASES: [&str; 42] = [
    "arangodb",
    "bolt",
    "cassandra",
    "clickhouse",
    "clickhouses",
    "cockroach",
    "cockroachdb",
    "couchbase",
    "couchbases",
    "couchdb",
    "db2",
    "firebird",
    "hive",
    "influxdb",
    "jdbc",
    "libsql",
    "mariadb",
    "memcached",
    "mongodb",
    "mssql",
    "mysql",
    "mysql2",
    "mysqlx",
    "neo4j",
    "neo4js",
    "oracle",
    "pg",
    "postgis",
    "postgres",
    "postgresql",
    "presto",
    "redis",
    "rediss",
    "redshift",
    "rqlite",
    "scylladb",
    "snowflake",
    "sqlite",
    "sqlserver",
    "trino",
    "valkey",
    "valkeys",
];

/// Ways out of the machine, whose URLs carry passwords as well: proxies, package indexes, the services that a server is
/// for. Nothing would work without them, and none of them is a database's.
const WAYS_OUT: [&str; 6] = ["http", "https", "socks4", "socks5", "socks5h", "socks"];

/// Leaves out what children must not see (S7): our own settings and those of the products whose names we also
/// read, confirm secrets, and URLs of databases, which are those of known schemes, those by the name of their variable,
/// and those of any other scheme with a password, save [`WAYS_OUT`]. `pass` names exceptions.
pub fn clean_environment(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    pass: &[String],
) -> Vec<(OsString, OsString)> {
    variables
        .into_iter()
        .filter(|(name, value)| pass.iter().any(|pass| name == OsStr::new(pass)) || !is_private(name, value))
        .collect()
}

fn is_private(name: &OsStr, value: &OsStr) -> bool {
    // Names and schemes are ASCII: what is not UTF-8 only has to compare as different.
    let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || NAMES.contains(&&*name)
        || name == "DATABASE_URL"
        || name.ends_with("_DATABASE_URL")
        || is_private_value(&value)
}

/// A URL, or several with commas between them.
fn is_private_value(value: &str) -> bool {
    is_private_url(value) || value.split(',').any(is_private_url)
}

fn is_private_url(value: &str) -> bool {
    // A file of variables may have left its quotes.
    let value = value.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\''));
    let Some((scheme, rest)) = value.split_once(':') else { return false };
    let scheme = scheme.trim_end();
    if !is_scheme(scheme) {
        return false;
    }
    let is_one_of =
        |part: &str, schemes: &[&str]| schemes.iter().any(|known| known.eq_ignore_ascii_case(part));
    // What follows a plus names a driver, or the way: `postgresql+asyncpg` is PostgreSQL, `git+https` goes by HTTPS.
    let mut parts = scheme.split('+');
    parts.next().is_some_and(|part| is_one_of(part, &DATABASES))
        || !scheme.split('+').any(|part| is_one_of(part, &WAYS_OUT)) && has_password(rest)
}

/// Letters, digits, `+`, `-` and `.`, the first one a letter (RFC 3986), and `_`, which some drivers have.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte))
}

/// Whether what follows a scheme and its colon is `//user:password@…`.
fn has_password(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix("//") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    user.and_then(|user| user.split_once(':')).is_some_and(|(_, password)| !password.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], pass: &[&str], kept: &[&str]) {
        let variables = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let pass: Vec<String> = pass.iter().map(ToString::to_string).collect();
        let names: Vec<_> = clean_environment(variables, &pass).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, kept);
    }

    #[test]
    fn s7_children_see_none_of_our_settings_or_secrets() {
        check(
            &[
                ("PATH", "/bin"),
                ("HANDRAISE_TOKEN", "t"),
                ("KANDEV_FEATURES_ACP_ELICITATION", "true"),
                ("AUTOMOBILE_ELICITATION", "off"),
                ("MCP_CONFIRM_SECRET", "s"),
                ("MCP_HOST_CONFIRM_SECRET", "s"),
                ("MCP_DATA_DIR", "/d"),
                ("HANDRAISED", "no"),
                ("ANTHROPIC_API_KEY", "k"),
            ],
            &[],
            &["PATH", "MCP_DATA_DIR", "HANDRAISED", "ANTHROPIC_API_KEY"],
        );
    }

    #[test]
    fn s7_children_see_no_database_urls() {
        check(
            &[
                ("DATABASE_URL", "anything"),
                ("APP_DATABASE_URL", "anything"),
                ("STORE", "postgres://user:secret@host/db"),
                ("OTHER", "PostgreSQL://host"),
                ("DRIVER", "postgresql+asyncpg://user:secret@host/db"),
                ("SEEDS", "mongodb+srv://user:secret@host/db"),
                ("JAVA", "jdbc:mysql://host/db?password=secret"),
                ("CACHE", "rediss://:secret@host"),
                ("QUOTED", "\"postgres://user:secret@host/db\""),
                ("FILE", " sqlite:///var/lib/app.db"),
                ("HOME_PAGE", "https://example.org"),
                ("NOTE", "about postgres://host"),
                ("GIT", "git+ssh://host"),
                ("DATABASE", "postgres"),
            ],
            &[],
            &["HOME_PAGE", "NOTE", "GIT", "DATABASE"],
        );
    }

    /// Whether a value is withheld, by its scheme.
    #[test]
    fn s7_children_see_no_url_with_a_password_but_those_that_lead_out() {
        let with_password = |scheme: &str| format!("{scheme}://user:secret@host:1/x?y#z");
        let without = |scheme: &str| format!("{scheme}://user@host:1/x:y@z");
        for scheme in DATABASES {
            assert!(is_private_url(&with_password(scheme)) && is_private_url(&without(scheme)), "{scheme}");
            assert!(is_private_url(&with_password(&format!("{}+driver", scheme.to_uppercase()))), "{scheme}");
        }
        for scheme in [
            "amqp", "amqps", "kafka", "nats", "mqtt", "ldap", "smtp", "ssh", "ftp", "git+ssh", "x-y.z_1", "s",
        ] {
            assert!(is_private_url(&with_password(scheme)), "{scheme}");
            assert!(!is_private_url(&without(scheme)), "{scheme}");
        }
        for scheme in ["http", "https", "HTTPS", "socks5", "socks5h", "git+https"] {
            assert!(!is_private_url(&with_password(scheme)) && !is_private_url(&without(scheme)), "{scheme}");
        }
        for url in [
            "amqp://:secret@host",
            "amqp://u:p@h@x",
            "amqp://u:p,q@h",
            "amqp://u:p%40@[::1]:5672",
            "'amqp://u:p@h'",
            "nats://h:4222,nats://u:p@h:4222",
            "https://h, redis://h",
        ] {
            assert!(is_private_value(url), "{url}");
        }
        for text in [
            "amqp://host:5672/vhost",
            "amqp://user:@host",
            "amqp:user:secret@host",
            "amqp://host/user:secret@elsewhere",
            "1amqp://u:p@h",
            "two words://u:p@h",
            "://u:p@h",
            "u:p@h",
            "C:\\Users",
            "/usr/bin:/bin",
            "https://u:p@h,https://u:p@i",
            ",",
            "",
        ] {
            assert!(!is_private_value(text), "{text}");
        }
    }

    #[test]
    fn s7_pass_env_names_exceptions_exactly() {
        check(
            &[("DATABASE_URL", "x"), ("HANDRAISE_LOG", "debug"), ("HANDRAISE_LOG_2", "x")],
            &["DATABASE_URL", "HANDRAISE_LOG"],
            &["DATABASE_URL", "HANDRAISE_LOG"],
        );
    }
}
