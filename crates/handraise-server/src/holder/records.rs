//! Records of the rails that a holder has tried (measure.md).

use std::time::Duration;

use handraise_api::{
    error::ErrorCode,
    frame::Frame,
    record::{AppendRecords, MAX_RECORDS, NumberedRecord},
};
use handraise_store::NewRecord;

use super::{payload, refused::Said, talk::Talk};
use crate::{hub::refusal, metrics::Refused};

/// Records that a holder may append at once, since one that was cut off tells of all that it kept meanwhile.
pub(super) const RECORDS_AT_ONCE: u32 = 10_000;
/// Records that a holder may append a second.
pub(super) const RECORDS_PER_SECOND: u32 = 1_000;

impl Talk<'_> {
    /// Keeps records in the name of this connection's token and instance, whatever they say (S9). What cannot be read is
    /// left out and counted.
    pub(super) async fn append_records(&mut self, frame: &Frame) -> Result<(), Said> {
        let AppendRecords { records, dropped } = payload(frame)?;
        let (app, connection) = (self.app, self.connection);
        if records.len() > MAX_RECORDS {
            let message = format!("{} records at once, and {MAX_RECORDS} are the most", records.len());
            return Err(refusal(ErrorCode::BadRequest, message).into());
        }
        let now = app.now();
        let boot = now.boot.as_millis();
        if !records.iter().all(|_| self.records.take(boot)) {
            app.metrics.refused(Refused::HolderRecords);
            app.metrics.records_dropped(records.len() as u64 + dropped);
            let message = format!("more than {RECORDS_PER_SECOND} records a second");
            return Err(refusal(ErrorCode::LimitExceeded, message).into());
        }
        let read = |text: &str| {
            let NumberedRecord { seq, ago_ms, record } = serde_json::from_str(text).ok()?;
            let at = now.wall.checked_sub(Duration::from_millis(ago_ms)).unwrap_or(now.wall);
            Some(NewRecord { seq, at, record: record.bounded() })
        };
        let kept: Vec<NewRecord> = records.iter().filter_map(|text| read(text.get())).collect();
        let token = &connection.grant.token;
        app.store
            .append_records(&connection.instance, connection.kind, (&token.id, &token.name), &kept)
            .await?;
        let unread = records.len() - kept.len();
        if unread > 0 {
            tracing::warn!(
                holder.instance = connection.instance,
                unread,
                "records that cannot be read were left out"
            );
        }
        app.metrics.records(kept.len() as u64);
        app.metrics.records_dropped(unread as u64 + dropped);
        Ok(())
    }
}
