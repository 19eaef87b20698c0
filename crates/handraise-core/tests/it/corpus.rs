//! What the fuzzer found worth keeping: `fuzz/corpus`.

#[path = "../../../../fuzz/checks/forms.rs"]
mod forms;
#[path = "../../../../fuzz/checks/replay.rs"]
mod replay;

#[test]
fn forms_of_the_corpus() {
    replay::replay("forms", forms::check);
}
