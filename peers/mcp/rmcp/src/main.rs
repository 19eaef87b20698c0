//! The Rust SDK as a peer of the gateway: `client` carries out plans from stdin, `server WITNESS` serves the tools.
//!
//! `clients/plans.mjs` says what plans and reports look like.

mod client;
mod server;

use anyhow::bail;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["client"] => client::carry_out().await,
        ["server", witness] => server::serve(witness).await,
        _ => bail!("usage: handraise-rmcp-peer client | server WITNESS"),
    }
}
