//! `handraise inbox watch`: a line for everything that opens and ends.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
};

use anyhow::Context as _;
use handraise_api::{
    ask::{Ask, AskList},
    event::{self, Snapshot},
};
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::{
    client::{Client, escaped},
    words,
};
use crate::{
    Exit,
    inbox::Reached,
    live::{Event, Live, Said},
    output, signals,
};

pub(super) async fn run(client: Client, is_json: bool) -> Exit {
    let interrupted = signals::shutdown_or_hangup()?;
    let not_running = client.not_running();
    let Reached::Answer(mut live) = Live::open(client.as_inbox()).await? else { return Err(not_running) };
    let mut watch = Watch { client, is_json, open: BTreeSet::new(), ended: BTreeSet::new() };
    let watching = async {
        loop {
            match live.next().await? {
                Said::Event(event) => watch.event(&event).await?,
                Said::Lost => output::complain("lost the inbox; trying again for as long as it takes"),
                Said::Back => output::complain("the inbox is there again"),
            }
        }
    };
    tokio::select! {
        () = interrupted => Ok(ExitCode::SUCCESS),
        failed = watching => match failed {
            Err(error) if output::reader_has_gone(&error) => Ok(ExitCode::SUCCESS),
            failed => failed,
        },
    }
}

struct Watch {
    client: Client,
    is_json: bool,
    /// The asks that were told as open, and not yet as settled.
    open: BTreeSet<String>,
    /// Those that were told as settled: the latest, by their ids.
    ended: BTreeSet<String>,
}

impl Watch {
    async fn event(&mut self, event: &Event) -> anyhow::Result<()> {
        match event.name.as_str() {
            event::SNAPSHOT => self.snapshot(&event.data).await,
            event::ASK_OPENED => self.opened(read(&event.data)?),
            event::ASK_UPDATED => {
                // Where several events were put together, the opening may be among them.
                let ask = read(&event.data)?;
                if ask.1.settlement.is_some() { self.settled(ask) } else { self.opened(ask) }
            }
            event::ASK_SETTLED => self.settled(read(&event.data)?),
            // Sessions and the like are not watched here.
            _ => Ok(()),
        }
    }

    /// Brings what was told in line with what is: nothing is told twice, and nothing is missed.
    async fn snapshot(&mut self, data: &str) -> anyhow::Result<()> {
        let raw: Value = serde_json::from_str(data).context("the inbox's snapshot is not understood")?;
        let snapshot: Snapshot =
            serde_json::from_value(raw.clone()).context("the inbox's snapshot is not understood")?;
        let mut now: BTreeMap<String, (Value, Ask)> = BTreeMap::new();
        let mut order = Vec::new();
        let mut take = |values: Option<&Value>, asks: Vec<Ask>| {
            let values = values.and_then(Value::as_array).cloned().unwrap_or_default();
            for (value, ask) in values.into_iter().zip(asks) {
                order.push(ask.id.clone());
                now.insert(ask.id.clone(), (value, ask));
            }
        };
        take(raw.get("asks"), snapshot.asks);
        let mut next = snapshot.next_cursor;
        while let Some(cursor) = next {
            let path = format!("/api/v1/asks?state=open&limit=100&cursor={}", escaped(&cursor));
            let raw: Value = self.client.get(&path).await?;
            let page: AskList = serde_json::from_value(raw.clone())?;
            take(raw.get("asks"), page.asks);
            next = page.next_cursor;
        }
        let ended: Vec<String> = self.open.iter().filter(|id| !now.contains_key(*id)).cloned().collect();
        for id in ended {
            // One that is too old to be known is only forgotten.
            match self.client.ask(&id).await {
                Ok(value) => {
                    let ask = serde_json::from_value(value.clone())?;
                    self.settled((value, ask))?;
                }
                Err(error) => {
                    tracing::debug!(ask.id = id, error = format!("{error:#}"), "an ask that ended is gone");
                    self.open.remove(&id);
                }
            }
        }
        for id in order {
            if let Some(ask) = now.remove(&id) {
                self.opened(ask)?;
            }
        }
        Ok(())
    }

    fn opened(&mut self, (value, ask): (Value, Ask)) -> anyhow::Result<()> {
        if self.ended.contains(&ask.id) || !self.open.insert(ask.id.clone()) {
            return Ok(());
        }
        let message = words::heading(&ask.content.message, 200);
        let said = format!("{} {}: {message}", words::who(&ask.origin), words::about(&ask));
        self.say(event::ASK_OPENED, "opened ", &ask.id, ask.opened_at, &said, &value)
    }

    fn settled(&mut self, (value, ask): (Value, Ask)) -> anyhow::Result<()> {
        const KEPT: usize = 10_000;
        let Some(settlement) = &ask.settlement else { return Ok(()) };
        if self.ended.contains(&ask.id) {
            return Ok(());
        }
        if !self.open.remove(&ask.id) {
            // It opened and ended at once, and only the end was sent.
            self.opened((value.clone(), ask.clone()))?;
            self.open.remove(&ask.id);
        }
        self.ended.insert(ask.id.clone());
        if self.ended.len() > KEPT {
            self.ended.pop_first();
        }
        let said = words::ended(settlement, &TimeZone::UTC);
        self.say(event::ASK_SETTLED, "settled", &ask.id, settlement.at, &said, &value)
    }

    fn say(
        &self,
        name: &str,
        word: &str,
        id: &str,
        at: handraise_api::Timestamp,
        said: &str,
        value: &Value,
    ) -> anyhow::Result<()> {
        let line = if self.is_json {
            json!({"event": name, "data": value}).to_string()
        } else {
            format!("{}  {word}  {}  {said}", words::clock(at, &TimeZone::UTC), words::short_id(id))
        };
        Ok(output::print(&line)?)
    }
}

/// An ask of an event, as it came and as we understand it.
fn read(data: &str) -> anyhow::Result<(Value, Ask)> {
    let value: Value = serde_json::from_str(data).context("an event of the inbox is not understood")?;
    let ask = serde_json::from_value(value.clone()).context("an event of the inbox is not understood")?;
    Ok((value, ask))
}
