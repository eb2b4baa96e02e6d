//! Tables of text.

use std::io::{IsTerminal, stdout};

use terminal_size::{Width, terminal_size};

/// Rows under a header. Columns are as wide as their widest cell.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

#[derive(Debug)]
pub(crate) struct Column {
    title: &'static str,
    is_number: bool,
}

impl Column {
    /// A column that begins at the left.
    pub(crate) fn text(title: &'static str) -> Self {
        Column { title, is_number: false }
    }

    /// A column that ends at the right.
    pub(crate) fn number(title: &'static str) -> Self {
        Column { title, is_number: true }
    }
}

impl Table {
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        Table { columns, rows: Vec::new() }
    }

    /// Adds a row with a cell for each column. Control characters in keys are escaped, as a terminal would obey them.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| printable(&cell)).collect());
    }

    /// Writes the table, without columns that are empty. If it is wider than the terminal, each row becomes lines.
    pub(crate) fn text(&self) -> String {
        let is_on_screen = stdout().is_terminal();
        let screen = terminal_size().filter(|_| is_on_screen);
        self.within(screen.map_or(usize::MAX, |(Width(width), _)| width.into()))
    }

    fn within(&self, width: usize) -> String {
        let table = self.aligned();
        if table.lines().all(|line| line.chars().count() <= width) { table } else { self.records() }
    }

    /// Writes each row as lines of a title and a cell, without cells that are empty.
    fn records(&self) -> String {
        let widest = self.columns.iter().map(|column| column.title.len()).max().unwrap_or(0);
        let record = |row: &Vec<String>| {
            let cells = self.columns.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
            cells.map(|(column, cell)| format!("{:<widest$}  {cell}\n", column.title)).collect::<String>()
        };
        self.rows.iter().map(record).collect::<Vec<_>>().join("\n")
    }

    fn aligned(&self) -> String {
        let width = |text: &str| text.chars().count();
        let widths = self.columns.iter().enumerate().map(|(i, column)| {
            let widest = self.rows.iter().map(|row| width(&row[i])).max().unwrap_or(0);
            if widest == 0 && !self.rows.is_empty() { 0 } else { widest.max(width(column.title)) }
        });
        let widths: Vec<usize> = widths.collect();
        let header: Vec<String> = self.columns.iter().map(|column| column.title.to_uppercase()).collect();
        let mut out = String::new();
        for row in std::iter::once(&header).chain(&self.rows) {
            let mut line = String::new();
            for ((cell, column), width) in row.iter().zip(&self.columns).zip(&widths) {
                match (column.is_number, *width) {
                    (_, 0) => {}
                    (true, width) => line += &format!("{cell:>width$}  "),
                    (false, width) => line += &format!("{cell:<width$}  "),
                }
            }
            out += line.trim_end();
            out.push('\n');
        }
        out
    }
}

/// Escapes control characters.
pub(crate) fn printable(text: &str) -> String {
    let escape = |char: char| if char.is_control() { char.escape_default().to_string() } else { char.into() };
    text.chars().map(escape).collect()
}

/// Writes a number with separators between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Writes the same, unless it is 0.
pub(crate) fn grouped_unless_zero(number: u64) -> String {
    if number > 0 { grouped(number) } else { String::new() }
}

/// Writes a number of keys.
pub(crate) fn keys(number: u64) -> String {
    format!("{} {}", grouped(number), if number == 1 { "key" } else { "keys" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_empty_ones_left_out() {
        let mut table =
            Table::new(vec![Column::text("policy"), Column::text("prefix"), Column::number("keys")]);
        table.row(["a", "", "1,000"].map(str::to_owned));
        table.row(["größe\u{1b}[2J", "", "7"].map(str::to_owned));
        let expected = "POLICY           KEYS\na               1,000\ngröße\\u{1b}[2J      7\n";
        assert_eq!(table.within(usize::MAX), expected);
    }

    #[test]
    fn rows_of_a_table_that_is_too_wide_are_lines() {
        let mut table =
            Table::new(vec![Column::text("policy"), Column::text("prefix"), Column::number("retry after")]);
        table.row(["app::search", "", "12m"].map(str::to_owned));
        table.row(["b", "sms", "1s"].map(str::to_owned));
        let aligned = table.within(usize::MAX);
        let widest = aligned.lines().map(str::len).max().unwrap();
        assert_eq!(table.within(widest), aligned);
        let lines = "policy       app::search\nretry after  12m\n\npolicy       b\nprefix       sms\nretry after  1s\n";
        assert_eq!(table.within(widest - 1), lines);
    }

    #[test]
    fn thousands_are_separated() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
