//! `handraise report asks`: how asks ended, from the inbox's records.

use std::process::ExitCode;

use anyhow::bail;
use clap::ValueEnum;
use handraise_api::{
    Timestamp,
    record::{Record, RecordList},
};
use handraise_config::duration;
use handraise_transport::{
    clock::{Clock as _, SystemClock},
    escape,
};
use serde_json::{Map, Value, json};

use super::{
    Format, sheet,
    tally::{Counts, Tally},
};
use crate::{
    Context, Exit,
    inbox::{Inbox, Reached},
    local, output,
};

/// Records of one page.
const PAGE: u32 = 500;
/// The most characters of a name in a table.
const NAME: usize = 60;

/// What to count.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What a line is about
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = By::Client)]
    by: By,
    /// Only what was tried since: a duration up to now such as 7d, or a time such as 2027-01-31T00:00:00Z
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only of the client that calls itself so
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// Only of this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// How it is written
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// What a line of the report is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Client,
    Era,
    Rail,
    Provenance,
    Tool,
}

impl By {
    const fn title(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Era => "era",
            Self::Rail => "rail",
            Self::Provenance => "provenance",
            Self::Tool => "tool",
        }
    }

    fn group(self, record: &Record) -> Option<&str> {
        match self {
            Self::Client => record.client.as_deref(),
            Self::Era => Some(record.era.as_str()),
            Self::Rail => Some(record.rail.as_str()),
            Self::Provenance => Some(record.provenance.as_str()),
            Self::Tool => record.tool.as_deref(),
        }
    }
}

pub(super) async fn run(context: &Context, arguments: &Arguments) -> Exit {
    let since = arguments.since.as_deref().map(|since| start(since, SystemClock.wall())).transpose()?;
    let tally = count(context, arguments, since).await?;
    if tally.total.tried() == 0 && arguments.format == Format::Table {
        output::complain("Nothing has been tried.");
        return Ok(ExitCode::SUCCESS);
    }
    output::print(written(&tally, arguments.by, since, arguments.format).trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// Reads `--since`.
fn start(since: &str, now: Timestamp) -> anyhow::Result<Timestamp> {
    let wrong = || {
        anyhow::anyhow!(
            "--since is {since:?}, but it takes a duration such as 7d or a time such as 2027-01-31T00:00:00Z"
        )
    };
    match duration::parse(since) {
        Ok(ago) => now.checked_sub(ago).map_err(|_| wrong()),
        Err(_) => since.parse().map_err(|_| wrong()),
    }
}

/// Goes through all records of the inbox that fit.
async fn count(context: &Context, arguments: &Arguments, since: Option<Timestamp>) -> anyhow::Result<Tally> {
    let data_dir = context.settings.data_dir()?;
    let (place, up) = (data_dir.display(), context.commands.quoted("up"));
    let Some(file) = local::read(data_dir, &context.commands)? else {
        bail!("no inbox has run in {place}; start one with {up}, or name its --data-dir DIR");
    };
    let inbox = Inbox::new(&file);
    let mut query = format!("limit={PAGE}");
    let since = since.map(|since| since.to_string());
    for (name, value) in [("since", &since), ("client", &arguments.client), ("tool", &arguments.tool)] {
        if let Some(value) = value {
            query.push_str(&["&", name, "=", &encoded(value)].concat());
        }
    }
    let (mut tally, mut cursor) = (Tally::default(), String::new());
    loop {
        let path = format!("/api/v1/records?{query}{cursor}");
        let Reached::Answer(RecordList { records, next_cursor }) = inbox.get(&path).await? else {
            bail!("the inbox in {place} is not running; start it with {up}");
        };
        for entry in &records {
            tally.add(arguments.by.group(&entry.record), &entry.record);
        }
        match next_cursor {
            Some(next) => cursor = format!("&cursor={}", encoded(&next)),
            None => return Ok(tally),
        }
    }
}

/// A value of a query.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let each = text
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") });
    each.collect()
}

fn written(tally: &Tally, by: By, since: Option<Timestamp>, format: Format) -> String {
    match format {
        Format::Json => escape::json(&as_json(tally, by, since).to_string()),
        Format::Csv => sheet::csv(&rows(tally, by, &|millis| millis.to_string(), "")),
        Format::Table => sheet::table(&rows(tally, by, &span, "–")),
        Format::Markdown => sheet::markdown(&rows(tally, by, &span, "–")),
    }
}

/// A duration for people.
fn span(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis / 100 % 10),
        60_000..3_600_000 => format!("{} min {} s", millis / 60_000, millis / 1_000 % 60),
        _ => format!("{} h {} min", millis / 3_600_000, millis / 60_000 % 60),
    }
}

/// A title, a line for each group, and one for all. `none` stands where nobody was waited for.
fn rows(tally: &Tally, by: By, span: &dyn Fn(u64) -> String, none: &str) -> Vec<Vec<String>> {
    let mut titles = vec![by.title().to_owned(), "tried".to_owned()];
    titles.extend(tally.total.ends().map(|(end, _)| end.title().to_owned()));
    titles.extend(["p50", "p99", "waited"].map(str::to_owned));
    let mut rows = vec![titles];
    let row = |name: String, counts: &Counts| {
        let mut row = vec![name, counts.tried().to_string()];
        row.extend(counts.ends().map(|(_, count)| count.to_string()));
        let percentile = |percent| counts.percentile(percent).map_or_else(|| none.to_owned(), span);
        row.extend([percentile(50), percentile(99), span(counts.waited())]);
        row
    };
    for (name, counts) in tally.groups() {
        // What has no name is told from whoever calls itself so.
        let name = name.map_or_else(|| "–".to_owned(), |name| escape::shortened(name, NAME));
        rows.push(row(name, counts));
    }
    rows.push(row("all".to_owned(), &tally.total));
    rows
}

fn as_json(tally: &Tally, by: By, since: Option<Timestamp>) -> Value {
    let counts = |counts: &Counts| {
        let mut object = Map::new();
        object.insert("tried".to_owned(), counts.tried().into());
        for (end, count) in counts.ends() {
            object.insert(end.title().replace(' ', "_"), count.into());
        }
        object.insert("p50_ms".to_owned(), counts.percentile(50).into());
        object.insert("p99_ms".to_owned(), counts.percentile(99).into());
        object.insert("waited_ms".to_owned(), counts.waited().into());
        object
    };
    let groups: Vec<Value> = tally
        .groups()
        .into_iter()
        .map(|(name, of)| {
            let mut object = counts(of);
            object.insert(by.title().to_owned(), name.into());
            Value::Object(object)
        })
        .collect();
    json!({"by": by.title(), "since": since.map(|since| since.to_string()), "groups": groups, "all": counts(&tally.total)})
}

#[cfg(test)]
mod tests {
    use handraise_api::words::{Outcome, Provenance};

    use super::{super::tally::tests::record, *};

    fn tally() -> Tally {
        let mut tally = Tally::default();
        for n in 0..13 {
            let provenance = if n < 2 { Provenance::Client } else { Provenance::NotShown };
            tally.add(Some("a\u{1b}[2Jb"), &record(Outcome::Decline, provenance, Some(100 + n)));
        }
        tally.add(None, &record(Outcome::Accept, Provenance::Human, Some(90_500)));
        tally
    }

    #[test]
    fn s42_a_table_has_counts_and_moves_no_terminal() {
        let text = written(&tally(), By::Client, None, Format::Table);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
            .collect();
        assert_eq!(
            lines[0][..7],
            [
                "client",
                "tried",
                "human accept",
                "client accept",
                "human decline",
                "client decline",
                "never shown"
            ]
        );
        assert_eq!(lines[1][..7], ["a\\u{1b}[2Jb", "13", "0", "0", "0", "2", "11"]);
        assert_eq!(lines[1][12..], ["106 ms", "112 ms", "1.3 s"]);
        assert_eq!((lines[2][0], lines[2][2], *lines[2].last().unwrap()), ("–", "1", "1 min 30 s"));
        assert_eq!((lines[3][0], lines[3][1]), ("all", "14"));
    }

    #[test]
    fn a_machine_reads_milliseconds_and_every_count() {
        let value: Value = serde_json::from_str(&written(&tally(), By::Client, None, Format::Json)).unwrap();
        assert_eq!(value["by"], "client");
        assert_eq!(
            (&value["groups"][0]["never_shown"], &value["groups"][0]["client_decline"]),
            (&json!(11), &json!(2))
        );
        assert_eq!(
            (&value["groups"][1]["client"], &value["groups"][1]["p99_ms"]),
            (&Value::Null, &json!(90_500))
        );
        assert_eq!(value["all"]["tried"], 14);
        let csv = written(&tally(), By::Client, None, Format::Csv);
        assert!(csv.lines().nth(2).unwrap().ends_with("\"90500\",\"90500\",\"90500\""), "{csv}");
    }

    #[test]
    fn since_is_a_time_or_so_long_ago() {
        let now: Timestamp = "2026-11-29T14:00:00Z".parse().unwrap();
        assert_eq!(start("1h30m", now).unwrap().to_string(), "2026-11-29T12:30:00Z");
        assert_eq!(start("2026-01-01T00:00:00Z", now).unwrap().to_string(), "2026-01-01T00:00:00Z");
        for wrong in ["yesterday", "", "-3d"] {
            let error = start(wrong, now).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--since is {wrong:?}")), "{error}");
        }
    }
}
