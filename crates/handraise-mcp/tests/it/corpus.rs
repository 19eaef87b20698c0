//! What the fuzzer found worth keeping: `fuzz/corpus`.

#[path = "../../../../fuzz/checks/frames.rs"]
mod frames;
#[path = "../../../../fuzz/checks/replay.rs"]
mod replay;
#[path = "../../../../fuzz/checks/state.rs"]
mod state;
#[path = "../../../../fuzz/checks/token.rs"]
mod token;

use replay::replay;

#[test]
fn s3_conversations_of_the_corpus() {
    replay("frames", frames::check);
}

#[test]
fn s22_states_of_the_corpus() {
    replay("state", state::check);
}

#[test]
fn tokens_of_the_corpus() {
    replay("token", token::check);
}
