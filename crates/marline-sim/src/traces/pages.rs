use super::TraceError;
use super::table::{excerpt, from_millis};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::time::Duration;

/// Web pages as a browser loaded them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pages {
    pages: Vec<Page>,
}

/// One page and everything that it loads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// The page's name.
    pub name: String,
    /// Its objects, at least one; an object's place is its [`id`](PageObject::id).
    pub objects: Vec<PageObject>,
}

/// One object of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageObject {
    /// Place in [`Page::objects`].
    pub id: usize,
    /// The object whose arrival caused the request, always one before this; `None` for the first
    /// and for others that nothing in the recording explains.
    pub initiator: Option<usize>,
    /// From 0, the most urgent, to 4: Chrome's VeryHigh, High, Medium, Low, VeryLow.
    pub priority: u8,
    /// Bytes on the wire with headers; may be 0.
    pub size: u64,
    /// Number of the connection that carried it, in order of appearance.
    pub connection: u32,
    /// Number of the host that it came from, in order of appearance.
    pub host: u32,
    /// When the recorded browser asked for it, from the start of the load.
    pub start: Duration,
    /// The server's own time between request and first byte.
    pub think: Duration,
    /// Whether nothing is shown before it has arrived.
    pub render_blocking: bool,
}

impl Pages {
    /// Most objects that a page may have.
    pub const MAX_OBJECTS: usize = 100_000;

    /// Reads a JSON document: `fields`, a list of names that says what the places of an object's
    /// row are, and `pages`, each with `page`, its name, and `objects`, its rows. The fields
    /// `id`, `initiator`, `priority`, `size`, `conn`, `host`, `start_ms`, `think_ms` and
    /// `render_blocking` are needed; everything else is ignored. `name` is the file's, for
    /// messages.
    ///
    /// # Errors
    ///
    /// When the text is no such document, or an object contradicts the others.
    pub fn parse(name: &str, text: &str) -> Result<Self, TraceError> {
        let document: Document<'_> = serde_json::from_str(text).map_err(|error| {
            TraceError::new(name, error.line() as u64, format!("not pages: {error}"))
        })?;
        let places = Places::find(&document.fields)
            .map_err(|field| TraceError::of_file(name, missing(field)))?;
        let mut pages: Vec<Page> = Vec::with_capacity(document.pages.len());
        for recorded in document.pages {
            let page = recorded.page.as_str();
            let fail = |problem: String| {
                TraceError::of_file(name, format!("page \"{}\": {problem}", excerpt(page)))
            };
            if pages.iter().any(|other| other.name == page) {
                return Err(fail("there are two of this name; rename one".into()));
            }
            if recorded.objects.is_empty() {
                return Err(fail("no objects; give at least its document".into()));
            }
            if recorded.objects.len() > Self::MAX_OBJECTS {
                return Err(fail(format!(
                    "more than {} objects; shorten it",
                    Self::MAX_OBJECTS
                )));
            }
            let objects = (recorded.objects.iter().enumerate())
                .map(|(id, row)| {
                    object(&places, id, row).map_err(|problem| {
                        let problem = format!("page \"{}\": {problem}", excerpt(page));
                        TraceError::new(name, line_of(text, row.get()), problem)
                    })
                })
                .collect::<Result<_, _>>()?;
            pages.push(Page {
                name: recorded.page,
                objects,
            });
        }
        if pages.is_empty() {
            return Err(TraceError::of_file(name, "no pages; give at least one"));
        }
        Ok(Self { pages })
    }

    /// All pages in the file's order; at least one.
    pub fn pages(&self) -> &[Page] {
        &self.pages
    }

    /// The page called `name`.
    pub fn get(&self, name: &str) -> Option<&Page> {
        self.pages.iter().find(|page| page.name == name)
    }
}

impl Page {
    /// Bytes of all objects on the wire.
    pub fn bytes(&self) -> u64 {
        self.objects.iter().map(|object| object.size).sum()
    }
}

#[derive(Deserialize)]
struct Document<'a> {
    fields: Vec<String>,
    #[serde(borrow)]
    pages: Vec<Recorded<'a>>,
}

#[derive(Deserialize)]
struct Recorded<'a> {
    page: String,
    /// Raw, because a row's place in the text says its line.
    #[serde(borrow)]
    objects: Vec<&'a RawValue>,
}

/// Where the values of an object's row are.
struct Places {
    id: usize,
    initiator: usize,
    priority: usize,
    size: usize,
    connection: usize,
    host: usize,
    start: usize,
    think: usize,
    render_blocking: usize,
    count: usize,
}

impl Places {
    fn find(fields: &[String]) -> Result<Self, &'static str> {
        let place = |name: &'static str| fields.iter().position(|f| f == name).ok_or(name);
        Ok(Self {
            id: place("id")?,
            initiator: place("initiator")?,
            priority: place("priority")?,
            size: place("size")?,
            connection: place("conn")?,
            host: place("host")?,
            start: place("start_ms")?,
            think: place("think_ms")?,
            render_blocking: place("render_blocking")?,
            count: fields.len(),
        })
    }
}

fn missing(field: &str) -> String {
    format!("fields does not name {field}; name the place of every value of an object's row")
}

fn object(places: &Places, id: usize, row: &RawValue) -> Result<PageObject, String> {
    let cells: Vec<&RawValue> = serde_json::from_str(row.get())
        .map_err(|_| format!("object {id} is not a list of values, one for each of fields"))?;
    if cells.len() != places.count {
        return Err(format!(
            "object {id} has {} values; fields names {}",
            cells.len(),
            places.count
        ));
    }
    let row = Values { id, cells };
    let found: usize = row.read("id", places.id, "a whole number from 0")?;
    if found != id {
        return Err(format!(
            "object {found} stands at place {id}; number objects 0, 1, 2 … in their order"
        ));
    }
    let initiator: i64 = row.read("initiator", places.initiator, "a whole number from -1")?;
    let initiator = match initiator {
        -1 => None,
        other => match usize::try_from(other) {
            Ok(other) if other < id => Some(other),
            _ => {
                return Err(format!(
                    "initiator {other} of object {id} is not one before it; give an id below \
                     {id}, or -1 for none"
                ));
            }
        },
    };
    let from_0_to_4 = "a whole number from 0 (most urgent) to 4";
    let priority: u8 = row.read("priority", places.priority, from_0_to_4)?;
    if priority > 4 {
        return Err(row.wrong("priority", places.priority, from_0_to_4));
    }
    let blocking = "0 or 1";
    Ok(PageObject {
        id,
        initiator,
        priority,
        size: row.read("size", places.size, "whole bytes from 0")?,
        connection: row.read("conn", places.connection, "a whole number from 0")?,
        host: row.read("host", places.host, "a whole number from 0")?,
        start: row.millis("start_ms", places.start)?,
        think: row.millis("think_ms", places.think)?,
        render_blocking: match row.read("render_blocking", places.render_blocking, blocking)? {
            0 => false,
            1 => true,
            2_u8.. => return Err(row.wrong("render_blocking", places.render_blocking, blocking)),
        },
    })
}

/// The values of one object's row.
struct Values<'a> {
    id: usize,
    cells: Vec<&'a RawValue>,
}

impl Values<'_> {
    fn read<T: DeserializeOwned>(
        &self,
        field: &str,
        place: usize,
        accepted: &str,
    ) -> Result<T, String> {
        serde_json::from_str(self.cells[place].get())
            .map_err(|_| self.wrong(field, place, accepted))
    }

    fn millis(&self, field: &str, place: usize) -> Result<Duration, String> {
        let accepted = "milliseconds from 0 to a week";
        from_millis(self.read(field, place, accepted)?)
            .ok_or_else(|| self.wrong(field, place, accepted))
    }

    fn wrong(&self, field: &str, place: usize, accepted: &str) -> String {
        let found = excerpt(self.cells[place].get());
        format!("{field} {found} of object {}; give {accepted}", self.id)
    }
}

/// The line on which `part`, a piece of `text`, begins.
fn line_of(text: &str, part: &str) -> u64 {
    let offset = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let before = &text.as_bytes()[..offset.min(text.len())];
    1 + before.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &str = "[\"id\",\"start_ms\",\"host\",\"mime\",\"size\",\"think_ms\",\
                          \"initiator\",\"priority\",\"conn\",\"render_blocking\"]";

    fn document(rows: &[&str]) -> String {
        format!(
            "{{\"about\":\"made by hand\",\n\"fields\": {FIELDS},\n\"pages\": [\n\
             {{\"page\":\"news\",\"objects\":[\n{}\n]}}]}}",
            rows.join(",\n")
        )
    }

    #[test]
    fn objects_are_read_by_the_names_of_their_places() {
        let text = document(&[
            "[0, 0.0, 0, \"text/html\", 21113, 725.4, -1, 0, 3, 1]",
            "[1, 101.5, 1, \"image/png\", 0, 0.0, 0, 4, 4, 0]",
        ]);
        let pages = Pages::parse("pages.json", &text).unwrap();
        let page = pages.get("news").unwrap();
        assert_eq!(pages.pages(), std::slice::from_ref(page));
        assert_eq!(
            page.objects,
            [
                PageObject {
                    id: 0,
                    initiator: None,
                    priority: 0,
                    size: 21_113,
                    connection: 3,
                    host: 0,
                    start: Duration::ZERO,
                    think: Duration::from_micros(725_400),
                    render_blocking: true,
                },
                PageObject {
                    id: 1,
                    initiator: Some(0),
                    priority: 4,
                    size: 0,
                    connection: 4,
                    host: 1,
                    start: Duration::from_micros(101_500),
                    think: Duration::ZERO,
                    render_blocking: false,
                },
            ]
        );
        assert_eq!(page.bytes(), 21_113);
        assert!(pages.get("shop").is_none());
    }

    #[test]
    fn bad_objects_are_refused_with_line_page_and_mend() {
        let good = "[0, 0.0, 0, \"a\", 5, 0, -1, 0, 0, 1]";
        for (row, parts) in [
            ("7", ["object 1 is not a list", "one for each of fields"]),
            ("[1, 2]", ["object 1 has 2 values", "fields names 10"]),
            (
                "[2, 0, 0, \"a\", 5, 0, 0, 0, 0, 1]",
                ["object 2 stands at place 1", "number objects 0, 1, 2"],
            ),
            (
                "[1, 0, 0, \"a\", 5, 0, 1, 0, 0, 1]",
                ["initiator 1 of object 1 is not one before", "or -1"],
            ),
            (
                "[1, 0, 0, \"a\", 5, 0, -2, 0, 0, 1]",
                ["initiator -2 of object 1", "an id below 1"],
            ),
            (
                "[1, 0, 0, \"a\", 5, 0, 0, 5, 0, 1]",
                ["priority 5 of object 1", "from 0 (most urgent) to 4"],
            ),
            (
                "[1, 0, 0, \"a\", -5, 0, 0, 0, 0, 1]",
                ["size -5 of object 1", "whole bytes from 0"],
            ),
            (
                "[1, -1, 0, \"a\", 5, 0, 0, 0, 0, 1]",
                ["start_ms -1 of object 1", "milliseconds from 0"],
            ),
            (
                "[1, 0, 0, \"a\", 5, \"x\", 0, 0, 0, 1]",
                ["think_ms \"x\" of object 1", "milliseconds from 0"],
            ),
            (
                "[1, 0, 0, \"a\", 5, 0, 0, 0, null, 1]",
                ["conn null of object 1", "a whole number from 0"],
            ),
            (
                "[1, 0, 0, \"a\", 5, 0, 0, 0, 0, 2]",
                ["render_blocking 2 of object 1", "0 or 1"],
            ),
        ] {
            let error = Pages::parse("p.json", &document(&[good, row]))
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("p.json, line 6: page \"news\": "),
                "{error}"
            );
            for part in parts {
                assert!(error.contains(part), "{row}: {error}");
            }
        }
    }

    #[test]
    fn bad_documents_are_refused() {
        let error = |text: &str| Pages::parse("p.json", text).unwrap_err().to_string();
        assert!(error("{\"fields\":[],\n\"pages\":[}").starts_with("p.json, line 2: not pages"));
        assert!(error("{\"pages\":[]}").contains("fields"));
        assert_eq!(
            error("{\"fields\":[\"id\"],\"pages\":[]}"),
            "p.json: fields does not name initiator; name the place of every value of an object's \
             row"
        );
        let empty = format!("{{\"fields\":{FIELDS},\"pages\":[]}}");
        assert!(error(&empty).contains("no pages; give at least one"));
        assert!(error(&document(&[])).contains("page \"news\": no objects"));
        let page = "{\"page\":\"a\",\"objects\":[[0,0,0,\"\",5,0,-1,0,0,1]]}";
        let twice = format!("{{\"fields\":{FIELDS},\"pages\":[{page},{page}]}}");
        assert!(error(&twice).contains("page \"a\": there are two"));
    }
}
