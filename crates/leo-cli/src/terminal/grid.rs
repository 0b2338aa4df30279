//! Tables that fit the terminal.

use std::fmt;

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};

/// A table that is at most so many columns of characters wide. What does not fit goes on in the next line: titles and names first,
/// numbers only if nothing else is left.
pub struct Grid {
    columns: Vec<(String, CellAlignment)>,
    rows: Vec<Vec<String>>,
    width: u16,
}

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

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(ASCII_MARKDOWN).set_content_arrangement(ContentArrangement::Dynamic).set_width(self.width);
        table.add_rows(&self.rows);
        // What there is without the titles, which may break.
        let numbers = table.column_max_content_widths();
        table.set_header(self.columns.iter().map(|(title, _)| title));
        for (column, (_, alignment)) in table.column_iter_mut().zip(&self.columns) {
            column.set_cell_alignment(*alignment);
        }
        let content: usize = table.column_max_content_widths().into_iter().map(usize::from).sum();
        let (bars, width) = (self.columns.len() + 1, usize::from(self.width));
        if content + 2 * self.columns.len() + bars <= width {
            return table;
        }
        let room = width.saturating_sub(bars);
        let is_number = |index: usize| self.columns[index].1 == CellAlignment::Right;
        let needed: usize = numbers
            .iter()
            .enumerate()
            .map(|(index, &width)| if is_number(index) { usize::from(width) } else { 1 })
            .sum();
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, 0));
            if is_number(index) && needed <= room {
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(numbers[index])));
            }
        }
        table
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table().fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CellAlignment::{Left, Right};

    #[test]
    fn tables_fit() {
        let columns = [("layer", Left), ("inactive", Right), ("undecided", Right), ("milliseconds", Right)];
        for width in [24, 40, 80] {
            let mut grid = Grid::new(&columns, width);
            grid.add_row(["a name that is rather long", "123,456", "7", "89.5"]);
            let text = grid.to_string();
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{text}");
            assert!(["123,456", "89.5"].iter().all(|number| text.contains(number)), "{text}");
        }
    }
}
