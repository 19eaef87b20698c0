//! What the fuzzer found worth keeping: `fuzz/corpus`.

#[path = "../../../../fuzz/checks/config.rs"]
mod config;
#[path = "../../../../fuzz/checks/replay.rs"]
mod replay;

#[test]
fn config_files_of_the_corpus() {
    replay::replay("config", config::check);
}
