"""The description of the API (OpenAPI 3.0), taken at its word: for tests that hold answers against it.

What is described is all that there may be: a status, a type or a key that is not described is a failure, though the
description lets new keys come.
"""

import copy
import json
import pathlib
import re

import jsonschema
import yaml

FILE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "openapi.yaml"
METHODS = ("get", "post", "put", "delete", "patch")


def strict(schema):
    """A schema of OpenAPI 3.0 as JSON Schema: `nullable` becomes a type, and objects have no keys but their own."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(value) for key, value in schema.items() if key not in ("nullable", "default", "example")}
    if schema.get("nullable") is True:
        made["type"] = [schema["type"], "null"]
    if schema.get("type") == "object" and "properties" in schema:
        made["additionalProperties"] = False
    return made


class Operation:
    """One path by one method."""

    def __init__(self, description, path, method, body):
        self.path, self.method, self._body, self._description = path, method, body, description

    @property
    def name(self):
        return f"{self.method} {self.path}"

    @property
    def is_open(self):
        """Whether it needs no log-in."""
        return self._body.get("security") == []

    @property
    def role(self):
        """The role that it is said to need at least; None where it needs none."""
        said = re.search(r"Needs the role (\w+)", self._body.get("description", ""))
        assert (said is None) == self.is_open, f"{self.name}: it is either open, or says which role it needs"
        return said and said[1]

    @property
    def statuses(self):
        return {int(status) for status in self._body["responses"]}

    @property
    def success(self):
        """The statuses that say that all is well."""
        return {status for status in self.statuses if status < 300}

    def answer(self, status):
        """What is said of one status; it has to be described."""
        responses = self._body["responses"]
        assert str(status) in responses, f"{self.name}: {status} is not described, only {sorted(responses)}"
        return self._description.resolve(responses[str(status)])

    def choices(self, name):
        """The values that a parameter may have, of those that are listed."""
        parameters = [self._description.resolve(one) for one in self._body["parameters"]]
        return next(one["schema"]["enum"] for one in parameters if one["name"] == name)

    def events(self):
        """The names of the schemas of the events of a stream."""
        stream = self.answer(200)["content"]["text/event-stream"]["x-data"]
        return {name: schema["$ref"].rsplit("/", 1)[1] for name, schema in stream.items()}

    def check(self, status, fields, body):
        """Holds an answer against the description; returns what is in it, which for JSON is the value."""
        answer = self.answer(status)
        assert fields["X-Content-Type-Options"] == "nosniff", f"{self.name}: {status} lets browsers guess its type"
        for name, header in answer.get("headers", {}).items():
            header = self._description.resolve(header)
            assert name in fields or not header.get("required"), f"{self.name}: {status} lacks {name}"
            if name in fields:
                self._description.check(fields[name], header["schema"], f"{self.name}: {status}, {name}")
        content = answer.get("content")
        kind = (fields["Content-Type"] or "").split(";")[0]
        if content is None:
            assert not body, f"{self.name}: {status} has no body, and has {body!r}"
            return body
        assert kind in content, f"{self.name}: {status} is of {sorted(content)}, not of {kind!r}: {body!r}"
        if kind != "application/json":
            return body if content[kind]["schema"].get("format") == "binary" else body.decode()
        value = json.loads(body)
        self._description.check(value, content[kind]["schema"], f"{self.name}: {status}")
        return value


class Description:
    """The description, as it is in the repository or as it is served."""

    def __init__(self, text):
        self.document = yaml.safe_load(text)
        self._root = {"components": {"schemas": strict(copy.deepcopy(self.document["components"]["schemas"]))}}
        self.operations = [
            Operation(self, path, method.upper(), item[method])
            for path, item in self.document["paths"].items() for method in METHODS if method in item]
        for path, item in self.document["paths"].items():
            assert set(item) <= set(METHODS), f"{path} has {sorted(item)}"

    def operation(self, method, path):
        return next(one for one in self.operations if (one.method, one.path) == (method, path))

    def resolve(self, node):
        """What a reference stands for."""
        while "$ref" in node:
            place = self.document
            for part in node["$ref"].removeprefix("#/").split("/"):
                place = place[part]
            node = place
        return node

    def check(self, value, schema, what):
        """Holds a value against a schema, given by its name or as it is; tells all that is wrong with it."""
        schema = {"$ref": f"#/components/schemas/{schema}"} if isinstance(schema, str) else strict(schema)
        checker = jsonschema.Draft202012Validator(
            {**self._root, "allOf": [schema]}, format_checker=jsonschema.FormatChecker())
        wrong = [f"  {problem.json_path}: {problem.message}" for problem in checker.iter_errors(value)]
        assert not wrong, "\n".join([f"{what} is not what is described:", *wrong, json.dumps(value)[:2000]])
