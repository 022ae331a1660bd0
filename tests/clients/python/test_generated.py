"""docs/openapi.yaml and docs/admin-openapi.yaml pass a strict validator behind a strict YAML reader, and a Python client
that is generated from the public one calls the product."""
import importlib
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import unittest

from facts import MODEL, ROOT, key, sim
import openapi_spec_validator
import ruamel.yaml

DOCUMENTS = pathlib.Path(os.environ["TOLLGATE_DOCS"])


def read(text):
    """YAML as a strict reader takes it: a key that stands twice is an error."""
    reader = ruamel.yaml.YAML(typ="safe", pure=True)
    reader.allow_duplicate_keys = False
    return reader.load(text)


def without_value(node, path=""):
    """Keys without a value: what a comma in unquoted text leaves behind."""
    if isinstance(node, dict):
        for name, value in node.items():
            if value is None:
                yield f"{path}/{name}"
            yield from without_value(value, f"{path}/{name}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            if not path.endswith("/enum"):
                yield from without_value(value, f"{path}/{index}")


class Documents(unittest.TestCase):
    def test_they_are_valid(self):
        for name in ("openapi.yaml", "admin-openapi.yaml"):
            with self.subTest(document=name):
                document = read((DOCUMENTS / name).read_text(encoding="utf-8"))
                openapi_spec_validator.validate(document)
                self.assertEqual(list(without_value(document)), [])

    def test_what_is_wrong_is_found(self):
        with self.assertRaises(ruamel.yaml.constructor.DuplicateKeyError):
            read("{a: 1, a: 2}")
        self.assertEqual(list(without_value(read("{description: Exact, in decimals}"))), ["/in decimals"])
        document = read((DOCUMENTS / "openapi.yaml").read_text(encoding="utf-8"))
        document["paths"]["/v1/models"]["get"]["operationId"] = "createMessage"
        with self.assertRaises(openapi_spec_validator.validation.exceptions.OpenAPIValidationError):
            openapi_spec_validator.validate(document)


class GeneratedClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tollgate-generated-")
        cls.addClassCleanup(folder.cleanup)
        scripts = sysconfig.get_path("scripts")
        # A schema or an operation that the generator cannot express is a warning, and so an error here.
        subprocess.run(
            [os.path.join(scripts, "openapi-python-client"), "generate", "--path", str(DOCUMENTS / "openapi.yaml"),
             "--output-path", os.path.join(folder.name, "tollgate_client"), "--meta", "none", "--fail-on-warning"],
            check=True, cwd=folder.name, env={**os.environ, "PATH": scripts + os.pathsep + os.environ["PATH"]})
        sys.path.insert(0, folder.name)
        cls.addClassCleanup(sys.path.remove, folder.name)
        cls.models = importlib.import_module("tollgate_client.models")
        cls.good = cls.connect("good")

    @classmethod
    def connect(cls, name):
        module = importlib.import_module("tollgate_client")
        client = module.AuthenticatedClient(base_url=ROOT, token=key(name), timeout=30)
        cls.addClassCleanup(client.get_httpx_client().close)
        return client

    def call(self, operation, client=None, **arguments):
        module = importlib.import_module(f"tollgate_client.api.{operation}")
        return module.sync_detailed(client=client or self.good, **arguments)

    def chat(self, content, client=None, model=MODEL):
        body = self.models.ChatCompletionRequest.from_dict(
            {"model": model, "messages": [{"role": "user", "content": content}], "max_tokens": 100})
        return self.call("open_ai_family.create_chat_completion", client, body=body)

    def test_models(self):
        answer = self.call("open_ai_family.list_models")
        self.assertIsInstance(answer.parsed, self.models.ModelList)
        entry = next(model for model in answer.parsed.data if model.id == MODEL)
        self.assertGreater(entry.context_window, 0)
        self.assertEqual(entry.pricing.currency, "USD")

    def test_chat_messages_and_responses_agree(self):
        answer = self.chat(sim(tokens=9))
        self.assertIsInstance(answer.parsed, self.models.ChatCompletion)
        choice = answer.parsed.choices[0]
        self.assertEqual(choice.finish_reason, self.models.FinishReason.STOP)
        self.assertEqual(answer.parsed.usage.completion_tokens, 9)
        message = self.call("messages_family.create_message", body=self.models.MessageRequest.from_dict(
            {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": sim(tokens=9)}]})).parsed
        self.assertIsInstance(message, self.models.Message)
        self.assertEqual(message.content[-1].text, choice.message.content)
        response = self.call("open_ai_family.create_response", body=self.models.ResponseRequest.from_dict(
            {"model": MODEL, "input": sim(tokens=9)})).parsed
        self.assertIsInstance(response, self.models.ResponseObject)
        self.assertEqual(response.output[-1].content[0].text, choice.message.content)

    def test_tools(self):
        tool = {"type": "function", "function": {"name": "get_weather", "parameters": {
            "type": "object", "properties": {"city": {"type": "string"}}}}}
        answer = self.call("open_ai_family.create_chat_completion", body=self.models.ChatCompletionRequest.from_dict(
            {"model": MODEL, "messages": [{"role": "user", "content": "x"}], "tools": [tool],
             "tool_choice": "required"})).parsed
        self.assertEqual(answer.choices[0].message.tool_calls[0].function.name, "get_weather")

    def test_embeddings(self):
        answer = self.call("open_ai_family.create_embedding", body=self.models.EmbeddingRequest.from_dict(
            {"model": "sim/embed", "input": ["one", "two"]})).parsed
        self.assertEqual([type(row.embedding[0]) for row in answer.data], [float, float])

    def test_usage(self):
        self.assertEqual(self.chat("x").status_code, 200)
        report = self.call("account.get_usage", range_=self.models.GetUsageRange.VALUE_0).parsed
        self.assertIsInstance(report, self.models.UsageReport)
        self.assertGreaterEqual(report.totals.requests, 1)
        self.assertRegex(report.balance.available, r"^\d+(\.\d+)?$")

    def test_cost_and_receipt(self):
        body = self.models.ChatCompletionRequest.from_dict(
            {"model": MODEL, "messages": [{"role": "user", "content": sim(tokens=9)}], "usage": {"include": True}})
        answer = self.call("open_ai_family.create_chat_completion", body=body).parsed
        receipt = self.call("account.get_generation", id=answer.id).parsed
        self.assertIsInstance(receipt, self.models.GenerationReceipt)
        self.assertEqual(float(receipt.data.total_cost), answer.usage.cost)
        self.assertEqual(receipt.data.tokens_completion, 9)

    def test_input_tokens(self):
        ask = {"model": MODEL, "input": sim(tokens=9)}
        counted = self.call("open_ai_family.count_response_input_tokens",
                            body=self.models.ResponseRequest.from_dict(ask)).parsed
        response = self.call("open_ai_family.create_response", body=self.models.ResponseRequest.from_dict(ask)).parsed
        self.assertEqual(counted.input_tokens, response.usage.input_tokens)

    def test_errors(self):
        for client, model, status, code in ((self.connect("sk-tollgate-nonsense"), MODEL, 401, "invalid_api_key"),
                                            (self.connect("broke"), MODEL, 402, "insufficient_credits"),
                                            (self.good, "sim/none", 404, "model_unavailable")):
            answer = self.chat("x", client, model)
            self.assertEqual(answer.status_code, status)
            self.assertIsInstance(answer.parsed, self.models.OpenAiError)
            self.assertEqual(answer.parsed.error.code, code)


if __name__ == "__main__":
    unittest.main(verbosity=2)
