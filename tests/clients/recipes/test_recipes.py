"""Every recipe of docs/clients.md, and every program of README.md, does what the page says. The code is run as it stands
there; a recipe without a case here fails the test."""
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "agents"))
from sandbox import (MODEL, PACKAGES, PAGE, README, RECIPES, ROOT, Sandbox, default_script, engine_requests,  # noqa: E402
                     key, queue, recipe)

NODE = os.environ["TOLLGATE_NODE"]
TEXT = "A scripted answer."
# What the recipe prints, and how many requests it makes. An answer has four tokens.
LIBRARIES = {
    "openai-python": (f"{TEXT}\n", 2),
    "openai-node": (f"{TEXT}\n{TEXT}\n", 2),
    "anthropic-python": (f"{TEXT}\n", 1),
    "anthropic-node": (f"{TEXT}\n", 1),
    "ai-sdk-compatible": (f"{TEXT}\n", 1),
    "langchain-python": (f"{TEXT}\n{TEXT}", 2),
    "langchain-node": (f"{TEXT}\n{TEXT}", 2),
    "cline": (f"{TEXT}\n", 1),
}
AGENTS = ("claude-code", "codex", "opencode", "aider")


class Recipes(unittest.TestCase):
    def setUp(self):
        self.sandbox = Sandbox()
        self.addCleanup(self.sandbox.close)
        default_script(text=TEXT)
        self.addCleanup(default_script)
        queue()

    def tearDown(self):
        self.assertEqual(self.sandbox.proxy.asked, [], "another host was called")

    def run_recipe(self, name, **options):
        """Runs a recipe in its language, and returns what it printed."""
        language, code = RECIPES[name]
        if language != "sh":
            return self.run_program(language, code, **options)
        settings = recipe(f"{name}-settings") if f"{name}-settings" in RECIPES else ""
        return self.sandbox.shell(settings + code, **options)

    def run_program(self, language, code, **options):
        if language == "python":
            done = self.sandbox.run(str(PACKAGES / "python/venv/bin/python"), "-c", code, **options)
        else:
            # Within the folder of the packages, where imports are resolved.
            folder = tempfile.mkdtemp(prefix="recipe-", dir=PACKAGES / "node")
            self.addCleanup(shutil.rmtree, folder)
            file = pathlib.Path(folder) / "recipe.mjs"
            file.write_text(code, encoding="utf-8")
            guard = PACKAGES / "node/tests/node/support/loopback_only.mjs"
            done = self.sandbox.run(NODE, "--import", str(guard), str(file), **options)
        return done

    def succeed(self, name):
        done = self.run_recipe(name)
        self.assertEqual(done.code, 0, f"{name}: {done}")
        return done.out

    def test_every_recipe_has_a_case(self):
        cases = {"curl", "ai-sdk", "cost", *LIBRARIES, *AGENTS}
        self.assertEqual({name for name in RECIPES if not name.endswith("-settings")}, cases)
        self.assertEqual({name for name in RECIPES if name.endswith("-settings")},
                         {f"{agent}-settings" for agent in AGENTS})
        blocks = [line for line in PAGE.splitlines() if line.startswith("```") and line != "```"]
        self.assertEqual(len(blocks), len(RECIPES) + 1, "a block is not a recipe; only the variables at the top may be")

    def test_the_programs_of_the_readme(self):
        """In the folder of the repository, with the file that `./dev run` has written. The second Python block goes on
        with the names of the first one."""
        (self.sandbox.work / ".tollgate").mkdir()
        (self.sandbox.work / ".tollgate/demo.json").write_text(json.dumps(
            {"base_url": ROOT, "dashboard_url": ROOT, "api_key": key("good"), "models": [MODEL]}), encoding="utf-8")
        blocks = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
        self.assertEqual([language for language, _ in blocks], ["python", "js", "python"])
        self.assertEqual(README.count("\n```"), 2 * len(blocks))
        (_, openai), (_, node), (_, anthropic) = blocks
        for language, code, printed in (("python", openai, TEXT), ("js", node, f"{TEXT}\n"),
                                        ("python", openai + anthropic, f"{TEXT}{TEXT}\n")):
            with self.subTest(language=language):
                done = self.run_program(language, code)
                self.assertEqual((done.code, done.out), (0, printed), done)

    def test_curl(self):
        self.assertIn(f'"content":"{TEXT}"', self.succeed("curl"))

    def test_libraries(self):
        for name, (printed, requests) in LIBRARIES.items():
            with self.subTest(recipe=name):
                before = len(engine_requests())
                self.assertIn(printed, self.succeed(name))
                self.assertEqual(len(engine_requests()) - before, requests)

    def test_usage_is_read(self):
        for name in ("openai-python", "anthropic-python", "ai-sdk-compatible"):
            with self.subTest(recipe=name):
                self.assertRegex(self.succeed(name), r"\n[1-9]\d* tokens\n")
        self.assertRegex(self.succeed("cline"), r"\n[1-9]\d* in, [1-9]\d* out\n")

    def test_a_wrong_key_fails(self):
        for name in (*LIBRARIES, "curl"):
            with self.subTest(recipe=name):
                done = self.run_recipe(name, key_name="sk-tollgate-nonsense")
                self.assertNotIn(done.code, (0, None), done)
                self.assertIn("401", done.out + done.err)

    def test_the_cost_of_an_answer_is_what_was_booked(self):
        cost, booked = self.succeed("cost").splitlines()
        self.assertGreater(float(cost.removeprefix("cost: ")), 0)
        self.assertEqual(float(cost.removeprefix("cost: ")), float(booked.removeprefix("booked: ")))

    def test_ai_sdk_with_a_tool(self):
        """The second step has the first one's answer in its history, which needs `store: false`."""
        default_script()
        queue({"reasoning_tokens": 5, "tool_calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}]},
              {"text": "It is sunny."})
        self.assertEqual(self.succeed("ai-sdk"), "2 steps: It is sunny.\n")
        self.assertEqual(queue(), 0)

    def test_coding_agents(self):
        for name in ("claude-code", "codex", "opencode"):
            with self.subTest(recipe=name):
                self.assertIn(TEXT, self.succeed(name))

    def test_aider(self):
        default_script(text="Here it is.\n\nhello.py\n```\nprint(\"hello\")\n```\n")
        self.succeed("aider")
        self.assertEqual((self.sandbox.work / "hello.py").read_text(), 'print("hello")\n')


if __name__ == "__main__":
    unittest.main(verbosity=2)
