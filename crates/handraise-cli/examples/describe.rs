//! What the product says about itself, as JSON: the source of `cargo xtask generate`.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    let description = serde_json::json!({
        "openapi": handraise_server::openapi(),
        "commands": handraise_cli::pages::all(),
    });
    writeln!(std::io::stdout().lock(), "{description}")
}
