//! A sheet of cells, written as a table, as Markdown or as CSV.

use handraise_transport::escape;
use unicode_width::UnicodeWidthStr as _;

/// Columns for a terminal: the first to the left, numbers to the right.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            let space = " ".repeat(width.saturating_sub(cell.width()));
            if column == 0 { format!("{cell}{space}") } else { format!("{space}{cell}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// A table of a Markdown document. What strangers wrote is text in it, and nothing else.
pub(crate) fn markdown(rows: &[Vec<String>]) -> String {
    let line = |row: &Vec<String>| {
        let cells = row.iter().map(|cell| {
            let mut plain = String::new();
            for c in cell.chars() {
                if "\\|`*_<>[]!#&~".contains(c) {
                    plain.push('\\');
                }
                plain.push(c);
            }
            plain
        });
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        text.push_str(&line(row));
        if number == 0 {
            let rest = "---:|".repeat(row.len().saturating_sub(1));
            text.push_str(&["|---|", &rest, "\n"].concat());
        }
    }
    text
}

/// Lines of values. A name that a spreadsheet would take for a formula stands behind an apostrophe.
pub(crate) fn csv(rows: &[Vec<String>]) -> String {
    let cell = |cell: &String| {
        let guard = if cell.starts_with(['=', '+', '-', '@']) { "'" } else { "" };
        format!("\"{guard}{}\"", escape::line(cell).to_string().replace('"', "\"\""))
    };
    let line = |row: &Vec<String>| row.iter().map(cell).collect::<Vec<_>>().join(",") + "\r\n";
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        vec![row(["client", "tried"]), row(["=cmd|\"x\"", "7"]), row(["é", "1,200"])]
    }

    #[test]
    fn every_format_has_the_same_cells() {
        assert_eq!(table(&rows()), "client    tried\n=cmd|\"x\"      7\né         1,200\n");
        assert_eq!(
            markdown(&rows()),
            "| client | tried |\n|---|---:|\n| =cmd\\|\"x\" | 7 |\n| é | 1,200 |\n"
        );
        assert_eq!(csv(&rows()), "\"client\",\"tried\"\r\n\"'=cmd|\"\"x\"\"\",\"7\"\r\n\"é\",\"1,200\"\r\n");
    }
}
