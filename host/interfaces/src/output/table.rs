//! Tables that fit the terminal: the last column gives way.

use super::text;

/// Columns between two columns.
const GAP: usize = 2;
/// The last column is never cut to less than this.
const MIN_COLUMNS: usize = 12;

/// A table under construction.
#[derive(Debug)]
pub struct TextTable {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// A table with these headings. A heading that begins with `>` is over a column aligned to the right.
    #[must_use]
    pub fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; cells become one line each.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.iter().map(|cell| text::one_line(cell)).collect());
    }

    /// The table in at most `columns`, as long as the columns before the last leave room for it.
    #[must_use]
    pub fn render(&self, columns: usize) -> String {
        let headings: Vec<&str> = self.headings.iter().map(|heading| heading.trim_start_matches('>')).collect();
        let widths: Vec<usize> = headings
            .iter()
            .enumerate()
            .map(|(index, heading)| {
                let cells = self.rows.iter().filter_map(|row| row.get(index)).map(|cell| text::width(cell));
                cells.chain([text::width(heading)]).max().unwrap_or(0)
            })
            .collect();
        let before: usize = widths.iter().rev().skip(1).map(|width| width + GAP).sum();
        let last = columns.saturating_sub(before).max(MIN_COLUMNS);
        let mut rendered = String::new();
        let headings = headings.iter().map(|heading| (*heading).to_owned()).collect();
        for row in std::iter::once(&headings).chain(&self.rows) {
            rendered.push_str(self.line(row, &widths, last).trim_end());
            rendered.push('\n');
        }
        rendered
    }

    fn line(&self, row: &[String], widths: &[usize], last: usize) -> String {
        let mut line = String::new();
        for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
            if index + 1 == widths.len() {
                line.push_str(&text::cut(cell, last));
                break;
            }
            let padding = " ".repeat(width.saturating_sub(text::width(cell)));
            let right = self.headings.get(index).is_some_and(|heading| heading.starts_with('>'));
            let (before, after) = if right { (padding.as_str(), "") } else { ("", padding.as_str()) };
            line.push_str(before);
            line.push_str(cell);
            line.push_str(after);
            line.push_str(&" ".repeat(GAP));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_last_column_gives_way() {
        let mut table = TextTable::new(&["RUN", ">CALLS", "TASK"]);
        table.row(["run_1".into(), "7".into(), "short".into()]);
        table.row(["run_字".into(), "1,234".into(), "a task\nover lines, and longer than there is room".into()]);
        let rendered = table.render(40);
        expect![[r#"
            RUN     CALLS  TASK
            run_1       7  short
            run_字  1,234  a task over lines, and l…
        "#]]
        .assert_eq(&rendered);
        assert!(rendered.lines().all(|line| text::width(line) <= 40));
    }

    #[test]
    fn no_rows_leave_the_headings() {
        assert_eq!(TextTable::new(&["A", "B"]).render(80), "A  B\n");
    }
}
