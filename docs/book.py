#!/usr/bin/env python3
"""Makes the documentation site of the repository's documents, or checks their links.

    docs/book.py [FOLDER]    the site, in FOLDER/html (target/book): needs mdbook and a marline
                             program (MARLINE, target/release/marline) for the reference
    docs/book.py --links     whether every link between the repository's documents holds

The book has the repository's shape, so that links between documents hold in it as they stand.
Links to what is no document, such as a source file, become plain text there.
"""

import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
# [text](target) and ![text](target); code is taken out before.
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\]|`[^`]*`)*)\]\(([^()\s]+)\)")
CODE = re.compile(r"^(```|~~~).*?^\1\s*$|(`+)(?!`).*?(?<!`)\2(?!`)", re.M | re.S)
PLACE = re.compile(r"<!-- .*?generate reference.*?-->")


def tracked():
    """The files of the repository, new ones included, and their folders."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    out = subprocess.run(command, cwd=TOP, check=True, capture_output=True, text=True).stdout
    files = {name for name in out.splitlines() if (TOP / name).exists()}
    folders = {str(folder) for name in files for folder in Path(name).parents}
    return files, folders


def without_code(text):
    """The text with spaces for its code, so that positions stay."""
    return CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def headings(text):
    """The anchors that GitHub gives a document's headings."""
    seen, anchors = {}, set()
    fenced = re.sub(r"^(```|~~~).*?^\1\s*$", "", text, flags=re.M | re.S)
    for line in re.findall(r"^#{1,6}\s+(.*?)\s*#*$", fenced, re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line)
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        again = seen.get(slug, 0)
        seen[slug] = again + 1
        anchors.add(f"{slug}-{again}" if again else slug)
    return anchors


def resolved(document, target):
    """The file and the anchor that a link of a document leads to, in the repository's names."""
    file, _, anchor = target.partition("#")
    place = os.path.normpath(Path(document).parent / file) if file else document
    return place, anchor


def outside(target):
    return re.match(r"[a-z][a-z0-9+.-]*:", target)


def links():
    """What is wrong with links between documents, a line each."""
    files, folders = tracked()
    anchors, wrong = {}, []
    for document in sorted(name for name in files if name.endswith(".md")):
        text = (TOP / document).read_text()
        for found in LINK.finditer(without_code(text)):
            target = found[3]
            if outside(target):
                continue
            line = text.count("\n", 0, found.start()) + 1
            place, anchor = resolved(document, target)
            if place not in files and place not in folders:
                wrong.append(f"{document}:{line}: {target} is not there")
            elif anchor and place.endswith(".md"):
                if place not in anchors:
                    anchors[place] = headings((TOP / place).read_text())
                if anchor not in anchors[place]:
                    wrong.append(f"{document}:{line}: {place} has no heading #{anchor}")
    return wrong


def staged(name):
    """What a file is called in the book: mdbook's name for a folder's page, for README.md."""
    return re.sub(r"\bREADME\.md\b", "index.md", name)


def rewritten(document, text, chapters, pictures):
    """A document as it stands in the book; what it shows is added to `pictures`."""

    def link(start, end, whole):
        mark, words, target = whole[1], text[whole.start(2) : whole.end(2)], whole[3]
        place, _ = resolved(document, target)
        if outside(target):
            return text[start:end]
        if place in chapters:
            return f"{mark}[{words}]({staged(target)})"
        if mark or place.endswith((".svg", ".png", ".csv")):
            pictures.add(place)
            return text[start:end]
        return words

    parts, done = [], 0
    for found in LINK.finditer(without_code(text)):
        start, end = found.span()
        parts += [text[done:start], link(start, end, found)]
        done = end
    return "".join(parts) + text[done:]


def book(folder, marline):
    """Lays out the book in `folder` and has mdbook make its pages."""
    source = folder / "src"
    shutil.rmtree(folder, ignore_errors=True)
    source.mkdir(parents=True)
    summary = (TOP / "docs/SUMMARY.md").read_text()
    reference = source / "docs/reference"
    subprocess.run([marline, "generate", "reference", reference], check=True)
    status = reference / "status.json"
    page, wrong = status_page(json.loads(status.read_text()))
    (reference / "status.md").write_text(page)
    status.unlink()
    pages = sorted(reference.glob("*.md"), key=lambda page: page.read_text().split("\n", 1)[0])
    title = lambda page: page.read_text().split("\n", 1)[0].removeprefix("# ")
    made = [f"- [{title(page)}](docs/reference/{page.name})" for page in pages]
    assert PLACE.search(summary), "docs/SUMMARY.md does not say where the reference stands"
    names = [resolved("docs/SUMMARY.md", found[3])[0] for found in LINK.finditer(summary)]
    place = lambda found: staged(resolved("docs/SUMMARY.md", found[3])[0])
    summary = LINK.sub(lambda found: f"[{found[2]}]({place(found)})", summary)
    (source / "SUMMARY.md").write_text(PLACE.sub("\n".join(made), summary))
    # Links from other documents into the reference are not there: it exists in the book only.
    pictures = set()
    for name in names:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        text = rewritten(name, (TOP / name).read_text(), set(names), pictures)
        (source / staged(name)).write_text(text)
    for name in pictures:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TOP / name, source / name)
    for name in ("book.toml", "book.css"):
        shutil.copy(TOP / "docs" / name, folder / name)
    subprocess.run(["mdbook", "build", "--dest-dir", folder / "html", folder], check=True)
    missing = [name for name in tracked()[0] if name.startswith("docs/") and name.endswith(".md")]
    missing = [name for name in missing if name not in names and name != "docs/SUMMARY.md"]
    return wrong + [f"{name} is not in docs/SUMMARY.md" for name in sorted(missing)]


# Where the fields of a status are described.
STATUS = """
crates/marline-cli/src/control/status.rs crates/marline-cli/src/control/counters.rs
crates/marline-cli/src/control/forecast.rs crates/marline-apps/src/live/status.rs
crates/marline-apps/src/live/inspect.rs crates/marline-apps/src/publish/status.rs
crates/marline-apps/src/tun/status.rs
""".split()
STRUCT = re.compile(r"^( *)pub struct (\w+)(?: from [^{]*)? \{\n(.*?)^\1\}", re.M | re.S)
FIELD = re.compile(r"((?: +///[^\n]*\n)+)(?: +#\[[^\n]*\n)* +(?:pub )?(\w+): ([^\n=]+?)(?:,\n| =)")


def described():
    """The structs of a status: for each its fields, with their types and comments."""
    structs = {}
    for file in STATUS:
        for _, name, body in STRUCT.findall((TOP / file).read_text()):
            structs[name] = {
                field: (kind, " ".join(line.strip(" /") for line in about.splitlines()))
                for about, field, kind in FIELD.findall(body)
            }
    return structs


def status_page(example):
    """The page about `marline status --json`, and what of the example it does not describe."""
    structs, rows, wrong = described(), [], []

    def walk(path, value, kind):
        words = re.findall(r"\w+", kind)
        inner = next((word for word in words if word in structs), None)
        if isinstance(value, list):
            # What is null in one of them another may have.
            for one in value:
                walk(f"{path}[]", one, kind)
        elif isinstance(value, dict) and not inner:
            # Of what is by name, the names are those of paths.
            if "Map" not in kind:
                wrong.append(f"{path} of a status is a {kind}, which is described nowhere")
        elif isinstance(value, dict):
            for key, one in value.items():
                name = f"{path}.{key}" if path else key
                if key not in structs[inner]:
                    wrong.append(f"{name} of a status has no description")
                    continue
                kind_, about = structs[inner][key]
                null = " May be null." if kind_.startswith("Option<") else ""
                about = re.sub(r"\[`?([^\]`]+)`?\](?:\([^)]*\))?", r"`\1`", about)
                about = about.replace("`None`", "null").replace("|", "&#124;")
                null = "" if "null" in about else null
                row = f"| `{name}` | {about}{null} |"
                if row not in rows:
                    rows.append(row)
                walk(name, one, kind_)

    walk("", example, "Status")
    text = json.dumps(example, indent=2)
    return (
        "# JSON of `marline status`\n\nWhat `marline status --json` prints, one object, and what the page and "
        "`marline top` read. Fields may be added; a reader ignores those that it does not know. Results of the simulator "
        "are in [Results](../RESULTS.md), the page's own in [The page](../WEB.md#json).\n\n| field | is |\n| --- | --- |\n"
        + "\n".join(rows)
        + f"\n\n## All of it\n\n```json\n{text}\n```\n",
        wrong,
    )


class Page(html.parser.HTMLParser):
    """The links, the anchors and what a page loads."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.loads = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.update(attributes[name] for name in ("id", "name") if attributes.get(name))
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        elif tag in ("link", "script", "img", "iframe", "source"):
            self.loads += [attributes[name] for name in ("href", "src") if attributes.get(name)]


def site(folder):
    """What is wrong with the site's links, a line each."""
    pages = {}
    for file in folder.rglob("*.html"):
        pages[file.resolve()] = Page(file.read_text())
    wrong = []
    for file, page in pages.items():
        # These two are shown at any address.
        if file.name in ("404.html", "toc.html"):
            continue
        for target in page.loads:
            if outside(target) and not target.startswith("data:") or target.startswith("//"):
                wrong.append(f"{file.name} loads {target}")
        for target in page.links + page.loads:
            if outside(target):
                continue
            name, _, anchor = target.partition("#")
            place = (file.parent / name).resolve() if name else file
            if not place.is_file():
                wrong.append(f"{file.relative_to(folder.resolve())}: {target} is not there")
            elif anchor and place in pages and anchor not in pages[place].anchors:
                wrong.append(f"{file.relative_to(folder.resolve())}: no #{anchor} in {name or 'itself'}")
    return wrong


def main():
    if sys.argv[1:] == ["--links"]:
        wrong = links()
    else:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else TOP / "target/book").resolve()
        marline = Path(os.environ.get("MARLINE", TOP / "target/release/marline")).resolve()
        wrong = book(folder, marline) + site(folder / "html")
        if not wrong:
            print(f"{len(list((folder / 'html').rglob('*.html')))} pages: {folder}/html/index.html")
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
