//! The page of results, for people.

use super::{profile::Agent, row::Row, scenario::SCENARIOS};

/// The most characters of a result that are shown.
const MOST: usize = 240;

/// What the page says first.
const INTRODUCTION: &str = "\
Measured DATE on loopback, without a network: the agents named below, from their packages, with a scripted model, behind
`handraise agent` and `handraise up`. The operator answers with a token, so `client` stands behind its answers.

- *on the pipe*: what the agent's own requests were answered with, forms first, then permissions
- *the model was told*: what came back from the model's tool, as the model's API received it; without the
  errors of a turn that was cancelled, which may or may not arrive
- *left*: processes two seconds after the end, and asks that were still open

";

/// The page: every agent with its rows.
pub(super) fn page(date: &str, results: &[(&Agent, Vec<Row>)]) -> String {
    let mut page = String::from(
        "# Agents, measured\n\n\
         <!-- Written by `cargo xtask peers agents`. Do not edit. -->\n\n",
    );
    page.push_str(&INTRODUCTION.replace("DATE", date));
    page.push_str("| scenario | what happens |\n|---|---|\n");
    for scenario in SCENARIOS {
        page.push_str(&line(&[scenario.name, scenario.about]));
    }
    for (agent, rows) in results {
        page.push_str(&["\n## ", agent.name, " ", agent.version(), "\n\n"].concat());
        page.push_str(&table(rows));
    }
    page
}

/// The rows of one agent.
pub(super) fn table(rows: &[Row]) -> String {
    let mut table = String::from(
        "| scenario | asks ended | on the pipe | the model was told | stop | exit | prompts | left |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let mut asks = row.asks.clone();
        asks.extend(row.refused.iter().map(|refused| format!("(an answer got {refused})")));
        let exit = row.exit.map_or_else(|| "–".to_owned(), |exit| exit.to_string());
        let left = match (row.processes_left, row.asks_left) {
            (0, 0) => "nothing".to_owned(),
            (processes, asks) => format!("{processes} processes, {asks} asks"),
        };
        let cells = [
            row.scenario.clone(),
            list(&asks),
            list(&row.on_the_pipe),
            row.model_saw.iter().map(|result| code(result)).collect::<Vec<_>>().join("<br>"),
            row.stop.clone(),
            exit,
            row.prompts.to_string(),
            left,
        ];
        let cells = cells.map(|cell| if cell.is_empty() { "–".to_owned() } else { cell });
        table.push_str(&line(&cells.each_ref().map(String::as_str)));
    }
    table
}

fn line(cells: &[&str]) -> String {
    ["| ", &cells.join(" | "), " |\n"].concat()
}

fn list(items: &[String]) -> String {
    items.join("<br>")
}

/// A text of others in a cell: one line, bounded, and nothing in it that ends the cell or its code.
fn code(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    let line = line.join(" ").replace('`', "'").replace('|', "¦");
    let shown: String = line.chars().take(MOST).collect();
    let more = if shown.len() < line.len() { "…" } else { "" };
    format!("`{shown}{more}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_stays_a_cell() {
        assert_eq!(code("a | b\n`c`"), "`a ¦ b 'c'`");
        assert_eq!(code(&"x".repeat(MOST + 1)).chars().count(), MOST + 3);
    }
}
