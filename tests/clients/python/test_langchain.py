"""LangChain for Python, with both providers and in the Responses mode."""
import unittest

from facts import BASE_URL, MODEL, ROOT, key, sim
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
import pydantic


class Person(pydantic.BaseModel):
    """A person."""
    name: str
    age: int


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: sunny"


PROVIDERS = {
    "openai": ChatOpenAI(model=MODEL, api_key=key("good"), base_url=BASE_URL, max_retries=0),
    "openai responses": ChatOpenAI(
        model=MODEL, api_key=key("good"), base_url=BASE_URL, max_retries=0, use_responses_api=True),
    "anthropic": ChatAnthropic(model=MODEL, api_key=key("good"), base_url=ROOT, max_retries=0),
}


class LangChain(unittest.TestCase):
    def each(self, check):
        for name, chat in PROVIDERS.items():
            with self.subTest(provider=name):
                check(name, chat)

    def test_streamed_and_not_streamed_are_equal(self):
        def check(_, chat):
            whole = chat.invoke("tell me more")
            self.assertTrue(whole.text)
            chunks = list(chat.stream("tell me more"))
            self.assertGreater(len(chunks), 3)
            self.assertEqual("".join(chunk.text for chunk in chunks), whole.text)

        self.each(check)

    def test_tools_round_trip(self):
        def check(_, chat):
            bound = chat.bind_tools([get_weather])
            question = HumanMessage("use get_weather")
            call = bound.invoke([question])
            self.assertEqual([one["name"] for one in call.tool_calls], ["get_weather"])
            end = bound.invoke([question, call, get_weather.invoke(call.tool_calls[0])])
            self.assertTrue(end.text)

        self.each(check)

    def test_structured_output(self):
        def check(name, chat):
            method = "function_calling" if name == "anthropic" else "json_schema"
            self.assertIsInstance(chat.with_structured_output(Person, method=method).invoke("a person"), Person)

        self.each(check)

    def test_an_error_within_a_stream_is_raised(self):
        def check(_, chat):
            with self.assertRaises(Exception):
                list(chat.stream(sim(tokens=20, cut_after_tokens=4)))

        self.each(check)


if __name__ == "__main__":
    unittest.main(verbosity=2)
