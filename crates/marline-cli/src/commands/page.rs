//! What people read on standard output: lines that keep to a terminal's width.

use crate::platform::width_of;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use std::io;
use textwrap::{Options, WordSplitter, fill};

/// What a page is written for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// Columns of the terminal.
    pub(super) width: usize,
    /// Everything there is to know.
    pub(super) details: bool,
}

/// Columns that are used where there is no terminal, or a narrower one: the usual width of one.
const WIDTH: usize = 80;

impl Layout {
    /// For standard output.
    pub(super) fn of_output(details: bool) -> Self {
        let width = width_of(&io::stdout()).map_or(WIDTH, |width| width.max(WIDTH));
        Layout { width, details }
    }
}

/// Text that keeps to a width.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) layout: Layout,
    text: String,
}

/// Columns by which what belongs to the line above is moved to the right.
const INDENT: &str = "    ";

impl Page {
    pub(super) fn new(layout: Layout) -> Self {
        let text = String::new();
        Page { layout, text }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// An empty line.
    pub(super) fn gap(&mut self) {
        self.text.push('\n');
    }

    /// A paragraph, whose further lines are indented.
    pub(super) fn line(&mut self, text: &str) {
        self.paragraph(text, "");
    }

    /// An indented paragraph.
    pub(super) fn note(&mut self, text: &str) {
        self.paragraph(text, INDENT);
    }

    fn paragraph(&mut self, text: &str, indent: &str) {
        // Names and addresses stay whole, so that they can be copied.
        let options = Options::new(self.layout.width)
            .word_splitter(WordSplitter::NoHyphenation)
            .break_words(false)
            .initial_indent(indent)
            .subsequent_indent(INDENT);
        self.text.push_str(&fill(text, options));
        self.text.push('\n');
    }

    /// A table, each row a line; all columns but the first `left` hold figures. What a row has to
    /// say beyond its figures follows on its line where that is wide enough, or else below it.
    pub(super) fn table(&mut self, head: &[&str], left: usize, rows: Vec<Row>) {
        let mut table = Table::new();
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(head);
        let mut notes = Vec::new();
        for row in rows {
            table.add_row(row.cells);
            notes.push(row.note);
        }
        for column in table.column_iter_mut().skip(left) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let mut spaced = |gap: u16| -> Vec<String> {
            for column in table.column_iter_mut() {
                column.set_padding((0, gap));
            }
            table.lines().collect()
        };
        let mut lines = spaced(2);
        let wide = |line: &String| line.trim_end().chars().count() > self.layout.width;
        if lines.iter().any(wide) {
            lines = spaced(1);
        }
        let mut notes = notes.into_iter();
        for (index, line) in lines.iter().enumerate() {
            self.text.push_str(line.trim_end());
            let note = match index {
                0 => None,
                _ => notes.next().filter(|note| !note.is_empty()),
            };
            let Some(note) = note else {
                self.text.push('\n');
                continue;
            };
            let taken = line.chars().count();
            if taken + note.chars().count() <= self.layout.width {
                let gap = taken - line.trim_end().chars().count();
                self.text.push_str(&" ".repeat(gap));
                self.text.push_str(&note);
                self.text.push('\n');
            } else {
                self.text.push('\n');
                self.note(&note);
            }
        }
    }
}

/// A row of a table.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) cells: Vec<String>,
    /// What it has to say beyond its figures; may be empty.
    pub(super) note: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(width: usize) -> Page {
        Page::new(Layout {
            width,
            details: false,
        })
    }

    fn rows() -> Vec<Row> {
        let row = |name: &str, figure: &str, note: &str| Row {
            cells: vec![name.to_owned(), figure.to_owned()],
            note: note.to_owned(),
        };
        vec![row("wlan0", "7", ""), row("wwan0", "1234", "no answer")]
    }

    #[test]
    fn columns_move_together_where_there_is_no_room() {
        let mut tight = page(12);
        tight.table(&["path", "figure"], 1, rows());
        let text = tight.into_text();
        let first: Vec<&str> = text.lines().take(2).collect();
        assert_eq!(first, ["path  figure", "wlan0      7"]);
    }

    #[test]
    fn a_note_stands_beside_its_row_or_below_it() {
        let mut narrow = page(20);
        narrow.table(&["path", "figure"], 1, rows());
        let expected = "path   figure\nwlan0       7\nwwan0    1234\n    no answer\n";
        assert_eq!(narrow.into_text(), expected);
        let mut wide = page(30);
        wide.table(&["path", "figure"], 1, rows());
        let expected = "path   figure\nwlan0       7\nwwan0    1234  no answer\n";
        assert_eq!(wide.into_text(), expected);
    }

    #[test]
    fn a_paragraph_keeps_to_the_width_and_its_words_stay_whole() {
        let mut page = page(12);
        page.line("session 0 with marline-pub:abc");
        assert_eq!(
            page.into_text(),
            "session 0\n    with\n    marline-pub:abc\n"
        );
    }
}
