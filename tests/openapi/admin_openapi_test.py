"""Checks that docs/admin-openapi.yaml agrees with the protos, is valid OpenAPI, and describes the responses of a running Tollgate:
admin_openapi_test.py TEST-CLUSTER GENERATOR PROTO-FOLDER OPENAPI-FILE."""
import glob
import http.client
import json
import os
import re
import subprocess
import sys
import unittest

import jsonschema
import yaml

from strict_yaml import StrictLoader

CLUSTER, GENERATOR, PROTOS, DOCUMENT = sys.argv[1:5]


class AdminOpenApi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(DOCUMENT, encoding="utf-8") as file:
            cls.text = file.read()
        cls.document = yaml.load(cls.text, StrictLoader)

    def operations(self):
        for path, item in self.document["paths"].items():
            for method, operation in item.items():
                yield path, method, operation

    def test_it_is_what_the_protos_say(self):
        files = sorted(glob.glob("tollgate/admin/v1/*.proto", root_dir=PROTOS))
        descriptors = subprocess.run(
            ["protoc", "-I", PROTOS, "--include_imports", "--include_source_info", "-o", "/dev/stdout", *files],
            check=True, capture_output=True).stdout
        generated = subprocess.run([GENERATOR], input=descriptors, check=True, capture_output=True).stdout
        self.assertEqual(self.text, generated.decode(), "docs/admin-openapi.yaml is stale: run ./dev openapi")

    def test_it_is_well_formed(self):
        self.assertEqual(self.document["openapi"], "3.1.0")
        schemas = self.document["components"]["schemas"]
        for schema in schemas.values():
            jsonschema.Draft202012Validator.check_schema(schema)

        def references(value):
            if isinstance(value, dict):
                if "$ref" in value:
                    yield value["$ref"]
                for inner in value.values():
                    yield from references(inner)
            elif isinstance(value, list):
                for inner in value:
                    yield from references(inner)

        for reference in references(self.document):
            self.assertTrue(reference.startswith("#/components/"), reference)
            _, _, kind, name = reference.split("/")
            self.assertIn(name, self.document["components"][kind])
        tags = {tag["name"] for tag in self.document["tags"]}
        ids = set()
        for path, method, operation in self.operations():
            where = f"{method} {path}"
            self.assertIn(method, ("get", "put", "post", "delete", "patch"), where)
            self.assertNotIn(operation["operationId"], ids, where)
            ids.add(operation["operationId"])
            self.assertTrue(set(operation["tags"]) <= tags, where)
            parameters = operation.get("parameters", [])
            self.assertEqual(len({(p["in"], p["name"]) for p in parameters}), len(parameters), where)
            in_path = [p["name"] for p in parameters if p["in"] == "path"]
            self.assertEqual(in_path, re.findall(r"\{(\w+)\}", path), where)
            for parameter in parameters:
                jsonschema.Draft202012Validator.check_schema(parameter["schema"])
                self.assertTrue(parameter["in"] == "query" or parameter["required"], where)
            self.assertIn("200", operation["responses"], where)
            self.assertIn("default", operation["responses"], where)
            self.assertEqual("requestBody" in operation and method in ("get", "delete"), False, where)
        self.assertGreater(len(ids), 40)

    def check(self, value, schema, where):
        whole = {"components": self.document["components"], **schema}
        error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(whole).iter_errors(value))
        if error:
            self.fail(f"{where}: {error.message} at {list(error.absolute_path)}, of {json.dumps(value)[:2000]}")

    def get(self, facts, path, operation, token):
        """A call on the workspace "good"; other resources do not exist."""
        target = re.sub(r"\{\w+\}", "none", path.replace("{workspace}", facts["workspaces"]["good"]))
        required = [parameter["name"] + "=x" for parameter in operation.get("parameters", [])
                    if parameter["in"] == "query" and parameter.get("required")]
        if required:
            target += "?" + "&".join(required)
        connection = http.client.HTTPConnection("127.0.0.1", facts["dashboard_port"], timeout=30)
        connection.request("GET", target, headers={"authorization": "Bearer " + token})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body

    def test_a_running_tollgate_answers_so(self):
        cluster = subprocess.Popen([CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            facts = json.loads(cluster.stdout.readline())
            with open(os.path.join(facts["dir"], "login_token"), encoding="utf-8") as file:
                token = file.read().strip()
            gets = [(path, operation) for path, method, operation in self.operations() if method == "get"]
            answered = []
            for path, operation in gets:
                status, body = self.get(facts, path, operation, token)
                content = operation["responses"]["200"]["content"]
                if status != 200:
                    self.check(json.loads(body), {"$ref": "#/components/schemas/Status"}, path)
                elif "application/json" in content:
                    self.check(json.loads(body), content["application/json"]["schema"], path)
                    answered.append(path)
            self.assertGreater(len(answered), 8, answered)
            for path, operation in gets[:3]:  # more wrong tokens would lock this address out
                status, body = self.get(facts, path, operation, "a-wrong-token")
                self.assertEqual(status, 401)
                self.check(json.loads(body), {"$ref": "#/components/schemas/Status"}, path)
        finally:
            cluster.stdin.close()
            cluster.stdout.close()
            self.assertEqual(cluster.wait(), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
