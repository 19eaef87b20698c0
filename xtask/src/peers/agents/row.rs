//! What a scenario came to, and what it was expected to come to.

use std::path::PathBuf;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::profile::Agent;
use crate::project::Project;

/// One scenario with one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) scenario: String,
    /// How each ask ended: source, outcome, provenance.
    pub(super) asks: Vec<String>,
    /// What the operator's submissions were refused with.
    pub(super) refused: Vec<String>,
    /// What the agent's requests were answered with on its own pipe: forms, then permissions.
    pub(super) on_the_pipe: Vec<String>,
    /// What the model was told by its tools; and the tools that it was not offered.
    pub(super) model_saw: Vec<String>,
    /// How the turn ended.
    pub(super) stop: String,
    /// The exit status of `handraise agent`.
    pub(super) exit: Option<i32>,
    /// How often the agent was prompted.
    pub(super) prompts: usize,
    /// Processes that were there two seconds after the end.
    pub(super) processes_left: usize,
    /// Asks that were open then.
    pub(super) asks_left: usize,
}

/// Where the expected rows of an agent are.
pub(super) fn expected_file(project: &Project, agent: &Agent) -> PathBuf {
    project.root.join(format!("xtask/peers/{}-{}.json", agent.name, agent.version()))
}

/// The expected rows of an agent; none when they were never written.
pub(super) fn expected(project: &Project, agent: &Agent) -> anyhow::Result<Vec<Row>> {
    let file = expected_file(project, agent);
    if !file.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(&file)?;
    serde_json::from_str(&text).with_context(|| format!("cannot read {}", file.display()))
}

/// Writes the expected rows of an agent.
pub(super) fn expect(project: &Project, agent: &Agent, rows: &[Row]) -> anyhow::Result<()> {
    let file = expected_file(project, agent);
    let text = serde_json::to_string_pretty(rows)? + "\n";
    std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// In what a row differs from the expected one, one line a field.
pub(super) fn differences(expected: Option<&Row>, row: &Row) -> anyhow::Result<Vec<String>> {
    let Some(expected) = expected else { return Ok(vec!["it is not expected at all".to_owned()]) };
    let (expected, row) = (serde_json::to_value(expected)?, serde_json::to_value(row)?);
    let fields = row.as_object().into_iter().flatten();
    Ok(fields
        .filter(|(field, value)| expected[field.as_str()] != **value)
        .map(|(field, value)| format!("{field}: expected {}, got {value}", expected[field.as_str()]))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::agents::{profile::AGENTS, scenario::scenarios_of};

    fn row() -> Row {
        Row {
            scenario: "accept".into(),
            asks: Vec::new(),
            refused: Vec::new(),
            on_the_pipe: Vec::new(),
            model_saw: Vec::new(),
            stop: "end_turn".into(),
            exit: Some(0),
            prompts: 1,
            processes_left: 0,
            asks_left: 0,
        }
    }

    #[test]
    fn a_difference_names_the_field_and_both_values() {
        let twice = Row { prompts: 2, ..row() };
        assert!(differences(Some(&row()), &row()).unwrap().is_empty());
        assert_eq!(differences(Some(&row()), &twice).unwrap(), ["prompts: expected 1, got 2"]);
        assert_eq!(differences(None, &row()).unwrap().len(), 1);
    }

    /// What holds for every agent, whatever else it does: no new prompt (AC-13), each request answered at most once,
    /// nothing left.
    #[test]
    fn ac13_no_expected_row_has_a_second_prompt_a_second_answer_or_leftovers() {
        let project = Project::find().unwrap();
        for agent in AGENTS {
            let rows = expected(&project, agent).unwrap();
            let names: Vec<&str> = rows.iter().map(|row| row.scenario.as_str()).collect();
            let wanted: Vec<&str> = scenarios_of(agent).map(|scenario| scenario.name).collect();
            assert_eq!(names, wanted, "{} {}", agent.name, agent.version());
            for row in rows {
                assert_eq!((row.prompts, row.processes_left, row.asks_left), (1, 0, 0), "{row:?}");
                assert!(row.on_the_pipe.iter().all(|answer| !answer.contains('+')), "{row:?}");
            }
        }
    }
}
