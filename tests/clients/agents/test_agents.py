"""Codex, Claude Code and opencode, without a terminal, with the settings of docs/clients.md. The simulated
engine answers them from a queue (tests/support/README.md)."""
import json
import shlex
import unittest
import urllib.request

from sandbox import FACTS, ROOT, Recorder, Sandbox, engine_bodies, engine_requests, queue, recipe


class Agent:
    """How to call an agent, how to read its answer, and its tool that runs a command."""

    # (code, text, session) of a run; text and session are empty when there is none.
    def read(self, done):
        raise NotImplementedError

    def ask(self, sandbox, prompt, session="", **options):
        settings = recipe(f"{self.name}-settings")
        return sandbox.shell(f"{settings}\nexec {self.command(prompt, session)}", **options)


class Codex(Agent):
    name = "codex"

    def command(self, prompt, session):
        resume = f"resume {session} " if session else ""
        return ("codex exec --dangerously-bypass-approvals-and-sandbox --skip-git-repo-check --json "
                f"{resume}{shlex.quote(prompt)}")

    def shell_call(self, command):
        return {"name": "exec_command", "arguments": {"cmd": command}}

    def read(self, done):
        session, text = "", ""
        for event in done.events():
            session = event.get("thread_id", session)
            if event["type"] == "item.completed" and event["item"]["type"] == "agent_message":
                text = event["item"]["text"]
        return text, session


class ClaudeCode(Agent):
    name = "claude-code"

    def command(self, prompt, session):
        resume = f"--resume {session} " if session else ""
        return f"claude -p --dangerously-skip-permissions --output-format json {resume}{shlex.quote(prompt)}"

    def shell_call(self, command):
        return {"name": "Bash", "arguments": {"command": command, "description": "Run a command"}}

    def read(self, done):
        result = done.events()[-1]
        return result.get("result", ""), result["session_id"]


class Opencode(Agent):
    name = "opencode"

    def command(self, prompt, session):
        resume = f"--session {session} " if session else ""
        return f"opencode run --format json --auto {resume}{shlex.quote(prompt)}"

    def shell_call(self, command):
        return {"name": "bash", "arguments": {"command": command, "description": "Run a command"}}

    def read(self, done):
        events = done.events()
        texts = [event["part"]["text"] for event in events if event["type"] == "text"]
        return texts[-1] if texts else "", events[0]["sessionID"]


def last_with_tools():
    return [body for body in engine_bodies() if body.get("tools")][-1]


def text_of(message):
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


class Cases:
    """The same cases for each agent."""

    @classmethod
    def setUpClass(cls):
        cls.sandbox = Sandbox()
        cls.addClassCleanup(cls.sandbox.close)

    def setUp(self):
        queue()

    def tearDown(self):
        self.assertEqual(self.sandbox.proxy.asked, [], "another host was called")
        # Decision 39, for everything that the agents send.
        for body in engine_bodies():
            roles = [message["role"] for message in body["messages"]]
            self.assertNotIn("system", roles[1:])
            self.assertNotIn("developer", roles)

    def ask(self, prompt, *scripts, session="", **options):
        """Runs the agent to the end of its answer: (text, session)."""
        queue(*scripts)
        done = self.agent.ask(self.sandbox, prompt, session, **options)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(queue(), 0, f"requests that were expected did not come\n{done}")
        return self.agent.read(done)

    def test_a_chat(self):
        text, session = self.ask("What is the answer?", {"reasoning_tokens": 5, "text": "The answer is 42."})
        self.assertEqual(text, "The answer is 42.")
        self.assertTrue(session)
        self.assertIn("What is the answer?", "".join(map(text_of, last_with_tools()["messages"])))

    def test_a_tool_loop(self):
        write = self.agent.shell_call("echo one > made.txt; echo wrote-it")
        read = self.agent.shell_call("cat made.txt")
        text, _ = self.ask("Make a file", {"reasoning_tokens": 5, "tool_calls": [write]}, {"tool_calls": [read]},
                           {"text": "There is one."})
        self.assertEqual(text, "There is one.")
        self.assertEqual((self.sandbox.work / "made.txt").read_text(), "one\n")
        messages = last_with_tools()["messages"]
        results = [text_of(message) for message in messages if message["role"] == "tool"]
        self.assertEqual(len(results), 2)
        self.assertIn("wrote-it", results[0])
        self.assertIn("one", results[1])
        calls = [message["tool_calls"] for message in messages if message.get("tool_calls")]
        self.assertEqual([json.loads(call[0]["function"]["arguments"]) for call in calls],
                         [write["arguments"], read["arguments"]])

    def test_a_nul_in_the_output_of_a_tool(self):
        """The agents send it as it is, and the engine gets it. The history holds it from then on: the answer after it and
        the next turn must work."""
        call = self.agent.shell_call("printf 'before\\0after'")
        text, session = self.ask("Print it", {"tool_calls": [call]}, {"text": "Printed."})
        self.assertEqual(text, "Printed.")
        self.assertIn("before\0after", self.last_result())
        text, _ = self.ask("And now?", {"text": "Still here."}, session=session)
        self.assertEqual(text, "Still here.")
        self.assertIn("before\0after", self.last_result())

    @staticmethod
    def last_result():
        return [text_of(message) for message in last_with_tools()["messages"] if message["role"] == "tool"][-1]

    def test_a_resumed_session(self):
        call = self.agent.shell_call("echo tool-result")
        _, session = self.ask("First question", {"reasoning_tokens": 5, "tool_calls": [call]},
                              {"text": "First answer."})
        text, _ = self.ask("Second question", {"text": "Second answer."}, session=session)
        self.assertEqual(text, "Second answer.")
        messages = last_with_tools()["messages"]
        history = " ".join(text_of(message) for message in messages)
        at = [history.index(part) for part in ("First question", "tool-result", "First answer.", "Second question")]
        self.assertEqual(at, sorted(at))

    def test_a_wrong_key(self):
        before = len(engine_requests())
        done = self.agent.ask(self.sandbox, "Hello", key_name="sk-tollgate-nonsense", seconds=175)
        self.assertNotIn(done.code, (0, None), done)
        self.assertIn("API key", done.out + done.err)
        # Codex retries five times within seconds whatever the server says; Claude Code for three minutes unless it is
        # told not to. The rest of the limit is for slow machines.
        self.assertLess(done.seconds, 150, done)
        self.assertEqual(len(engine_requests()), before)


class CodexTest(Cases, unittest.TestCase):
    agent = Codex()


class ClaudeCodeTest(Cases, unittest.TestCase):
    agent = ClaudeCode()

    def test_its_late_system_message_is_folded(self):
        """It sends one after its first user turn: the engine gets the text in that turn."""
        recorder = Recorder()
        self.addCleanup(recorder.close)
        self.sandbox.url = recorder.url
        self.addCleanup(setattr, self.sandbox, "url", ROOT)
        self.ask("What is late?", {"text": "This."})
        (sent,) = [body for body in recorder.bodies() if body.get("tools") and body.get("messages")]
        self.assertEqual([message["role"] for message in sent["messages"]], ["user", "system"])
        late = text_of(sent["messages"][1])
        self.assertTrue(late)
        system, user = last_with_tools()["messages"]
        self.assertNotIn(late, text_of(system))
        self.assertEqual(text_of(user), text_of(sent["messages"][0]) + late)


class OpencodeTest(Cases, unittest.TestCase):
    agent = Opencode()


def tearDownModule():
    """What the agents used is charged to the last token."""
    used = [request for request in engine_requests() if request["finished"]]
    request = urllib.request.Request(f"{ROOT}/api/v1/usage", headers={"authorization": "Bearer " + FACTS["keys"]["good"]})
    with urllib.request.urlopen(request) as answer:
        totals = json.load(answer)["totals"]
    expected = [len(used), sum(row["prompt_tokens"] for row in used), sum(row["tokens_generated"] for row in used)]
    assert [totals["requests"], totals["input_tokens"], totals["output_tokens"]] == expected, (totals, expected)


if __name__ == "__main__":
    unittest.main(verbosity=2)
