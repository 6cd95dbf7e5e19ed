#!/usr/bin/env python3
"""Are these files valid qlog? By the draft's schema and that of our own events, which are in
crates/marline-cli/tests/qlog. Needs python3-jsonschema.

    lab/qlog.py FILE.sqlog...

Prints how many events of each type there are; ends with 1 at the first mistake.
"""

import collections
import json
import pathlib
import sys

import jsonschema

SCHEMAS = pathlib.Path(__file__).parent.parent / "crates/marline-cli/tests/qlog"
MAIN = json.loads((SCHEMAS / "main-schema.json").read_text())
OWN = json.loads((SCHEMAS / "marline-events.json").read_text())


def validator(schema, defs):
    schema = {**schema, "$defs": defs}
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def data_of(event):
    required = event["required"]
    properties = {**required, **event.get("optional", {})}
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": False,
    }


HEADER = validator({"$ref": "#/$defs/QlogFileSeq"}, MAIN["$defs"])
EVENT = validator({"$ref": "#/$defs/Event"}, MAIN["$defs"])
DATA = {f"marline:{name}": validator(data_of(event), OWN["$defs"]) for name, event in OWN["events"].items()}
DATA["simulation:scenario"] = validator({"$ref": "#/$defs/SimulationScenario"}, MAIN["$defs"])
OF_PATH = {f"marline:{name}" for name, event in OWN["events"].items() if event.get("of_path")}


def check(path):
    counts = collections.Counter()
    data = path.read_bytes()
    assert data[:1] == b"\x1e", "does not begin with a record separator (RFC 7464)"
    texts = data[1:].split(b"\x1e")
    for number, text in enumerate(texts):
        assert text.endswith(b"\n"), f"text {number} has no line end: {text[:80]!r}"
        value = json.loads(text)
        if number == 0:
            HEADER.validate(value)
            assert "urn:x-marline:qlog:events:marline" in value["trace"]["event_schemas"]
            continue
        EVENT.validate(value)
        name = value["name"]
        assert name in DATA, f"{name} is in no schema"
        DATA[name].validate(value["data"])
        assert ("tuple" in value) == (name in OF_PATH), f"{name}: tuple"
        counts[name] += 1
    return counts


def main():
    total = collections.Counter()
    for name in sys.argv[1:]:
        try:
            total += check(pathlib.Path(name))
        except (AssertionError, ValueError, jsonschema.ValidationError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
    for name, count in sorted(total.items()):
        print(f"{count:9} {name}")
    assert total, "no events"
    return 0


sys.exit(main())
