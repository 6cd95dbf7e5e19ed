//! A scenario file: read once, altered by flags, and checked cell by cell.

use super::cells::{self, Axis, Cell};
use super::links::ReadFile;
use super::mistake::{Mistake, Mistakes, Place, Sink};
use super::plan::Scenario;
use super::reader::Reader;
use super::tree::{self, Node, Table, Value};
use super::{checked, dotted, draw};
use crate::results::DRAW;

/// A scenario file that may have axes.
///
/// ```
/// use marline_sim::scenario::Document;
///
/// let text = r#"
/// duration = "2s"
/// schedulers = ["edpf"]
/// links.a = { rate = "6mbit", delay = "10ms" }
/// links.b = { rate = "6mbit" }
/// workloads = [{ kind = "constant", rate = "2mbit" }]
/// [vary]
/// "links.b.delay" = ["10ms", "20ms"]
/// "#;
/// let mut document = Document::parse("two.toml", text)?;
/// document.set("seeds=3")?;
/// let scenarios = document.scenarios(&|_| Err("no files here".into()))?;
/// assert_eq!(scenarios.len(), 2);
/// assert_eq!(scenarios[1].1.seeds, [1, 2, 3]);
/// # Ok::<(), marline_sim::scenario::Mistakes>(())
/// ```
#[derive(Clone, Debug)]
pub struct Document {
    start: Place,
    root: Table,
    axes: Vec<Axis>,
    altered: bool,
}

/// Longest scenario file (bytes).
const MOST_TEXT: usize = 1 << 20;

impl Document {
    /// Reads the text of a scenario; `file` is what errors call it.
    ///
    /// # Errors
    ///
    /// What is not TOML, and mistakes under `[vary]`. The rest is checked by [`Self::scenario`].
    pub fn parse(file: &str, text: &str) -> Result<Self, Mistakes> {
        let start = Place::File {
            file: file.into(),
            line: 1,
            column: 1,
        };
        if text.len() > MOST_TEXT {
            return Err(Mistakes::from(Mistake {
                place: start,
                key: String::new(),
                message: format!("the file is longer than {MOST_TEXT} bytes"),
                mend: "is it a scenario?".into(),
            }));
        }
        let root = tree::parse(file, text)?;
        let sink = Sink::default();
        let mut axes = cells::read(&root, &sink);
        axes.splice(0..0, draw::read(&root, &start, &sink));
        let mut document = sink.answer(Some(Self {
            start,
            root,
            axes: Vec::new(),
            altered: false,
        }))?;
        document.set_axes(axes)?;
        Ok(document)
    }

    /// Sets a dotted key, `KEY=VALUE` as `--set` takes it. An axis of that key goes, and it is
    /// drawn no more.
    ///
    /// # Errors
    ///
    /// A key that leads nowhere; wrong values are found when the scenario is checked.
    pub fn set(&mut self, text: &str) -> Result<(), Mistakes> {
        let (place, key, value) = flag("--set", text, "VALUE")?;
        let wrong = |message: String, mend: String| {
            Mistakes::from(Mistake {
                place: place.clone(),
                key: key.into(),
                message,
                mend,
            })
        };
        if key == "vary" || key.starts_with("vary.") {
            let mend = "write --vary KEY=VALUE,VALUE".to_owned();
            return Err(wrong("axes are not set".into(), mend));
        }
        let node = tree::parse_flag(&place, value)
            .map_err(|why| wrong(why, "write a value as in the file".into()))?;
        dotted::set(&mut self.root, key, node).map_err(|(message, mend)| wrong(message, mend))?;
        self.axes.retain(|axis| axis.key != key);
        draw::forget(&mut self.root, key);
        self.altered = true;
        self.draw_again()
    }

    /// Varies a dotted key, `KEY=VALUE,VALUE,…` as `--vary` takes it; an axis of that key is
    /// replaced, and it is drawn no more.
    ///
    /// # Errors
    ///
    /// A key that leads nowhere, and values that come twice.
    pub fn vary(&mut self, text: &str) -> Result<(), Mistakes> {
        let (place, key, values) = flag("--vary", text, "VALUE,VALUE")?;
        // Written as in the file, the values mean the same.
        let listed = values.strip_prefix('[').and_then(|v| v.strip_suffix(']'));
        let nodes = listed
            .unwrap_or(values)
            .split(',')
            .map(|value| value.trim().trim_matches(['"', '\'']))
            .filter(|value| !value.is_empty());
        let nodes: Vec<Node> = nodes
            .map(|value| Node {
                place: place.clone(),
                value: Value::Text(value.into()),
            })
            .collect();
        let sink = Sink::default();
        let axis = cells::axis(key, &place, &nodes, &sink);
        let axis = sink.answer(axis)?;
        let mut axes = self.axes.clone();
        axes.retain(|other| other.key != axis.key);
        axes.push(axis);
        draw::forget(&mut self.root, key);
        self.altered = true;
        self.set_axes(axes)
    }

    /// Compares these schedulers, `NAME,NAME,…` or `all`, instead of the file's.
    pub fn compare(&mut self, names: &str) {
        let place = Place::Flag(format!("--scheduler {names}").into());
        let items = names.split(',').map(|name| Node {
            place: place.clone(),
            value: Value::Text(name.trim().into()),
        });
        let value = Value::List(items.collect());
        self.root.set("schedulers", Node { place, value });
        self.altered = true;
    }

    /// Was it altered by flags? Then its expectations hold no more.
    pub fn altered(&self) -> bool {
        self.altered
    }

    /// The title, if there is one.
    pub fn title(&self) -> Option<String> {
        self.root.get("title")?.scalar()
    }

    /// What is varied.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Every combination of the axes, the last one turning fastest; one empty cell without axes.
    pub fn cells(&self) -> Vec<Cell> {
        // `set_axes` keeps their number in bounds.
        cells::cells(&self.axes).unwrap_or_default()
    }

    /// The scenario of one cell, checked. `files` answers the text of files that it names.
    ///
    /// # Errors
    ///
    /// All mistakes that were found.
    pub fn scenario(&self, cell: &Cell, files: &ReadFile<'_>) -> Result<Scenario, Mistakes> {
        let sink = Sink::default();
        let found = self.check(cell, files, &sink);
        sink.answer(found)
    }

    /// The scenarios of all cells.
    ///
    /// # Errors
    ///
    /// All mistakes that were found in any, each once.
    pub fn scenarios(&self, files: &ReadFile<'_>) -> Result<Vec<(Cell, Scenario)>, Mistakes> {
        let sink = Sink::default();
        let mut scenarios = Vec::new();
        for cell in self.cells() {
            if let Some(scenario) = self.check(&cell, files, &sink) {
                scenarios.push((cell, scenario));
            }
        }
        sink.answer(Some(scenarios))
    }

    /// What the cells of `[draw]` draw, by their numbers: keys and values. A share of what an axis
    /// sets has another value in each of its cells and is given as the share.
    ///
    /// What cannot be drawn is left out; [`Self::scenarios`] says why.
    pub fn drawn(&self) -> Vec<(String, Vec<(String, String)>)> {
        // Mistakes are those of the cells, which report them.
        let sink = Sink::default();
        let cells = self.cells();
        let of_one_draw = cells.chunk_by(|a, b| number(a) == number(b));
        let drawn = of_one_draw.filter_map(|cells| {
            let number = number(cells.first()?)?;
            let roots = cells.iter().filter_map(|cell| self.root_of(cell, &sink));
            let roots: Vec<Table> = roots.collect();
            let one = |drawn: draw::Drawn| {
                let value = |root| dotted::get(root, &drawn.key)?.scalar();
                let first = value(roots.first()?)?;
                let same = roots
                    .iter()
                    .all(|root| value(root).as_ref() == Some(&first));
                let shown = if same { first } else { drawn.pick.to_string() };
                Some((drawn.key, shown))
            };
            let keys = draw::drawn(&self.root, number, &sink).into_iter();
            Some((number.to_owned(), keys.filter_map(one).collect()))
        });
        drawn.collect()
    }

    /// Reads `[draw]` again, of which a flag may have changed something.
    fn draw_again(&mut self) -> Result<(), Mistakes> {
        let sink = Sink::default();
        let axis = draw::read(&self.root, &self.start, &sink);
        let mut axes = self.axes.clone();
        axes.retain(|axis| axis.key != DRAW);
        axes.splice(0..0, sink.answer(Some(axis))?);
        self.set_axes(axes)
    }

    /// The tree of one cell.
    fn root_of(&self, cell: &Cell, sink: &Sink) -> Option<Table> {
        let mut root = self.root.clone();
        for (key, value) in cell {
            let axis = self.axes.iter().find(|axis| axis.key == *key)?;
            for (key, node) in &axis.point(value)?.sets {
                if let Err((message, mend)) = dotted::set(&mut root, key, node.clone()) {
                    sink.add(Mistake {
                        place: axis.place.clone(),
                        key: format!("vary.{}", axis.key),
                        message,
                        mend,
                    });
                }
            }
        }
        // Last, because it may draw shares of what axes set.
        if let Some(number) = number(cell) {
            draw::set(&mut root, number, sink);
        }
        Some(root)
    }

    fn check(&self, cell: &Cell, files: &ReadFile<'_>, sink: &Sink) -> Option<Scenario> {
        let root = self.root_of(cell, sink)?;
        let top = Reader::new(sink, &root, &self.start, "");
        let axes = (!self.altered).then_some(self.axes.as_slice());
        checked::read(&top, axes, files)
    }

    fn set_axes(&mut self, axes: Vec<Axis>) -> Result<(), Mistakes> {
        if cells::cells(&axes).is_none()
            && let Some(mistake) = cells::too_many(&axes)
        {
            return Err(mistake.into());
        }
        let sink = Sink::default();
        draw::no_two_laws(&self.root, &axes, &sink);
        sink.answer(Some(()))?;
        self.axes = axes;
        Ok(())
    }
}

/// Which draw the cell is of, if any.
fn number(cell: &Cell) -> Option<&str> {
    let found = cell.iter().find(|(key, _)| key == DRAW);
    found.map(|(_, number)| number.as_str())
}

/// Splits the value of a flag at its first `=`.
fn flag<'a>(flag: &str, text: &'a str, form: &str) -> Result<(Place, &'a str, &'a str), Mistakes> {
    let place = Place::Flag(format!("{flag} {text}").into());
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((place, key.trim(), value.trim())),
        _ => Err(Mistakes::from(Mistake {
            place,
            key: String::new(),
            message: "has no key and value".into(),
            mend: format!("write {flag} KEY={form}, such as links.a.delay=20ms"),
        })),
    }
}
