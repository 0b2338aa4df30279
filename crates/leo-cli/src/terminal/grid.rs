//! Tables that fit the terminal. No word and no number is ever broken: what does not fit goes on in the next line at a
//! space, and where not even the longest words fit beside each other, every row becomes a list.

use std::fmt;

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};

/// A table that is at most so many columns of characters wide, unless a single word is wider.
pub struct Grid {
    columns: Vec<(String, CellAlignment)>,
    rows: Vec<Vec<String>>,
    width: u16,
}

/// How far the cells of a row stand to the right of its first one, where rows are lists.
const INDENT: &str = "  ";

impl Grid {
    pub(crate) fn new(columns: &[(&str, CellAlignment)], width: u16) -> Self {
        let columns = columns.iter().map(|&(title, alignment)| (title.to_owned(), alignment)).collect();
        Self { columns, rows: Vec::new(), width }
    }

    pub fn add_row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn titles(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(title, _)| title.as_str())
    }

    /// How wide the cells of each column are.
    fn natural(&self) -> Vec<u16> {
        let mut table = Table::new();
        table.set_header(self.titles()).add_rows(&self.rows);
        table.column_max_content_widths()
    }

    /// How wide each column must be so that no word breaks.
    fn least(&self) -> Vec<u16> {
        let words = |cell: &str| cell.split(' ').collect::<Vec<_>>().join("\n");
        let mut table = Table::new();
        table
            .set_header(self.titles().map(words))
            .add_rows(self.rows.iter().map(|row| row.iter().map(|cell| words(cell))));
        table.column_max_content_widths()
    }

    /// How wide columns are with so much room on both sides of each, if they fit: as wide as their cells, but for the
    /// widest.
    fn widths(&self, padding: u16) -> Option<Vec<u16>> {
        let columns = u16::try_from(self.columns.len()).ok()?;
        let room = self.width.checked_sub(columns + 1 + columns * 2 * padding)?;
        let (natural, least) = (self.natural(), self.least());
        let capped = |cap: u16| -> Vec<u16> {
            natural.iter().zip(&least).map(|(&natural, &least)| natural.min(cap).max(least)).collect()
        };
        let fits = |widths: &Vec<u16>| widths.iter().map(|&width| u32::from(width)).sum::<u32>() <= u32::from(room);
        (1..=natural.iter().copied().max().unwrap_or(1)).rev().map(capped).find(fits)
    }

    fn table(&self, widths: &[u16], padding: u16) -> Table {
        let mut table = Table::new();
        table.load_style(ASCII_MARKDOWN).set_content_arrangement(ContentArrangement::Dynamic).set_width(self.width);
        table.set_header(self.titles()).add_rows(&self.rows);
        for ((column, (_, alignment)), width) in table.column_iter_mut().zip(&self.columns).zip(widths) {
            column.set_cell_alignment(*alignment);
            column.set_padding((padding, padding));
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width + 2 * padding)));
        }
        table
    }

    /// A line for each cell that says something, and what it says after its title.
    fn write_list(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        for row in &self.rows {
            for (index, (title, cell)) in self.titles().zip(row).enumerate().filter(|(_, (_, cell))| !cell.is_empty()) {
                let text = if title.is_empty() { cell.clone() } else { format!("{title}: {cell}") };
                let line = wrapped(&text, usize::from(self.width), if index == 0 { "" } else { INDENT });
                write!(formatter, "{}{line}", if is_first { "" } else { "\n" })?;
                is_first = false;
            }
        }
        Ok(())
    }
}

/// Text in lines of at most so many characters, unless a word is longer; those after the first a little further to the
/// right.
fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let (mut lines, mut length) = (indent.to_owned(), indent.len());
    for (index, word) in text.split(' ').enumerate() {
        let letters = word.chars().count();
        if index > 0 && length + 1 + letters > width {
            lines += &format!("\n{indent}{INDENT}");
            length = indent.len() + INDENT.len();
        } else if index > 0 {
            lines.push(' ');
            length += 1;
        }
        lines += word;
        length += letters;
    }
    lines
}

impl fmt::Display for Grid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match [1, 0].into_iter().find_map(|padding| Some((self.widths(padding)?, padding))) {
            Some((widths, padding)) => self.table(&widths, padding).fmt(formatter),
            None => self.write_list(formatter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CellAlignment::{Left, Right};

    fn grid(width: u16) -> String {
        let columns = [("layer", Left), ("inactive", Right), ("undecided units", Right), ("milliseconds", Right)];
        let mut grid = Grid::new(&columns, width);
        grid.add_row(["a name that is rather long", "123,456", "7", "89.5"]);
        grid.add_row(["/layers/2/Relu", "1", "", "0.1"]);
        grid.to_string()
    }

    #[test]
    fn tables_fit_and_break_no_word() {
        for width in [16, 24, 40, 52, 60, 72, 80, 100] {
            let text = grid(width);
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{text}");
            let words = [
                "name",
                "rather",
                "/layers/2/Relu",
                "inactive",
                "undecided",
                "units",
                "milliseconds",
                "123,456",
                "89.5",
            ];
            assert!(words.iter().all(|word| text.contains(word)), "{width}: {text}");
        }
    }

    #[test]
    fn where_nothing_fits_rows_are_lists() {
        let list = "layer: a name that is\n  rather long\n  inactive: 123,456\n  undecided units: 7\n  milliseconds: 89.5\n\
                    layer: /layers/2/Relu\n  inactive: 1\n  milliseconds: 0.1";
        assert_eq!(grid(24), list);
    }
}
