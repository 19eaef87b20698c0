//! Fills a database with settled asks, for measurements: `seed DATA_DIR COUNT` repeats the latest one so many times.

use std::{error::Error, path::Path};

use handraise_store::{DATABASE_FILE, Store};
use sqlx::{Connection as _, SqliteConnection};

const SEED: &str = "
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < $1)
    INSERT INTO asks (id, instance, state, digest, source, session_id, bytes, opened_at, deadline, due, settled_at,
        outcome, provenance, rail, wire, settled_by, reason, holder_kind, holder_token, client, server, content, token)
    SELECT 'seed-' || printf('%010d', n), instance, state, digest, source, session_id, bytes, opened_at - n, deadline,
        due, settled_at - n, outcome, provenance, rail, wire, settled_by, reason, holder_kind, holder_token, client,
        server, content, token
    FROM numbers, (SELECT * FROM asks WHERE state = 'settled' ORDER BY settled_at DESC LIMIT 1)";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(data_dir), Some(count)) = (arguments.next(), arguments.next()) else {
        return Err("give a data directory and how many asks to put in".into());
    };
    Store::open_aside(Path::new(&data_dir)).await?.close().await;
    let file = Path::new(&data_dir).join(DATABASE_FILE);
    let mut database = SqliteConnection::connect(&format!("sqlite://{}", file.display())).await?;
    sqlx::query(SEED).bind(count.parse::<i64>()?).execute(&mut database).await?;
    database.close().await?;
    Ok(())
}
