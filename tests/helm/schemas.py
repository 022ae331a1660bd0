"""Checks objects against the Kubernetes API's own OpenAPI schemas, and custom resources against the definitions of their
projects, strictly: a field that the API does not know is an error, which the server would only drop."""
import copy
import glob
import json
import os

import jsonschema
import yaml

MAP = {"type": "object", "additionalProperties": {"type": "string"}}
METADATA = {"type": "object", "additionalProperties": False, "required": ["name"],
            "properties": {"name": {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"},
                           "namespace": {"type": "string"}, "labels": MAP, "annotations": MAP}}


def strict(node):
    """The schema, refusing unknown fields, in the words of JSON Schema."""
    if isinstance(node, list):
        return [strict(one) for one in node]
    if not isinstance(node, dict):
        return node
    made = {key: strict(value) if key != "properties" else {name: strict(one) for name, one in value.items()}
            for key, value in node.items() if key not in ("description", "default", "example")}
    if made.get("x-kubernetes-int-or-string") or made.get("format") == "int-or-string":
        for key in ("type", "format", "anyOf"):
            made.pop(key, None)
        made["type"] = ["integer", "string"]
    if "properties" in made and "additionalProperties" not in made and not made.get("x-kubernetes-preserve-unknown-fields"):
        made["additionalProperties"] = False
    return made


class Schemas:
    def __init__(self, folder):
        with open(os.path.join(folder, "kubernetes.json"), encoding="utf-8") as file:
            self.root = {"definitions": strict(json.load(file)["definitions"])}
        # A number is accepted as its text.
        quantity = self.root["definitions"]["io.k8s.apimachinery.pkg.api.resource.Quantity"]
        quantity.update({"type": ["string", "number"]})
        self.validators = {}
        resolver = jsonschema.RefResolver.from_schema(self.root)
        for name, definition in self.root["definitions"].items():
            for kind in definition.get("x-kubernetes-group-version-kind", []):
                version = "/".join(filter(None, (kind["group"], kind["version"])))
                self.validators[version, kind["kind"]] = jsonschema.Draft4Validator(
                    {"$ref": f"#/definitions/{name}"}, resolver=resolver)
        self.custom = set()
        for path in glob.glob(os.path.join(folder, "crds", "*.yaml")):
            self.add_custom(path)

    def add_custom(self, path):
        with open(path, encoding="utf-8") as file:
            documents = [one for one in yaml.load_all(file, yaml.CSafeLoader) if one]
        for document in documents:
            if document["kind"] != "CustomResourceDefinition":
                continue
            spec = document["spec"]
            for version in spec["versions"]:
                schema = strict(copy.deepcopy(version["schema"]["openAPIV3Schema"]))
                schema["properties"].update({"apiVersion": {}, "kind": {}, "metadata": METADATA})
                key = f"{spec['group']}/{version['name']}", spec["names"]["kind"]
                self.validators[key] = jsonschema.Draft4Validator(schema)
                self.custom.add(key)

    def faults(self, one):
        """The errors of an object; empty: it is valid."""
        key = one.get("apiVersion"), one.get("kind")
        if key not in self.validators:
            return [f"{key} is not a kind of the API"]
        errors = list(self.validators[key].iter_errors(one))
        if not list(jsonschema.Draft4Validator(METADATA).iter_errors(one["metadata"])) and not errors:
            return []
        errors += list(jsonschema.Draft4Validator(METADATA).iter_errors(one["metadata"]))
        return [f"{one['kind']} {one['metadata'].get('name')}: {'.'.join(map(str, error.path))}: {error.message[:300]}"
                for error in errors]
