// The framing of the public event streams: each rule has a stream that breaks it.
#include "tests/support/protocol/public_stream.h"

#include "tests/support/protocol/broken_streams.h"
#include "tests/support/protocol/chat_checker.h"

namespace tollgate::test {
namespace {

std::string Chunk(const std::string& delta, const std::string& finish = "null") {
  return Data(R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m",)"
              R"("choices":[{"index":0,"delta":{)" +
              delta + R"(},"finish_reason":)" + finish + "}]}");
}

TEST(PublicStream, EveryViolationOfTheFramingIsFound) {
  const Events legal = {
      Chunk(R"("role":"assistant","content":"")"),
      Chunk(R"("content":"caf\u00e9")"),
      ": keep-alive\n\n",
      Chunk("", R"("stop")"),
      "data: [DONE]\n\n",
  };
  const std::vector<Broken> table = {
      {"lines end in LF", Change(1, "\n\n", "\r\n\r\n")},
      {"the stream is UTF-8", Change(1, "caf", "\xff")},
      {"the stream is UTF-8", Change(1, "caf", "\xc0\xaf")},
      {"the stream is UTF-8", Change(1, "caf", "\xed\xa0\x80")},
      {"an event has one data line", Change(1, "data: ", "data: {}\ndata: ")},
      {"a line is a comment, an event line or a data line", Change(1, "data: ", "data:")},
      {"a line is a comment, an event line or a data line", Insert(1, "id: 7\n\n")},
      {"one empty line ends an event", Change(1, "\n\n", "\n\n\n")},
      {"an event has data", Insert(1, "event: x\n\n")},
      {"an event line names something", Insert(1, "event: \ndata: {}\n\n")},
      {"the event line comes first", Change(1, "\n\n", "\nevent: x\n\n")},
      {"a comment stands alone", Change(1, "data: ", "event: x\n: y\ndata: ")},
      {"data is a JSON object or [DONE]", Insert(1, "data: {\n\n")},
      {"data is compact JSON", Change(1, "\"choices\":", "\"choices\": ")},
      {"the last event is whole", Change(4, "\n\n", "\n")},
      {"the last event is whole", Insert(5, "data: {")},
  };
  ExpectFound(legal, table,
              [](const std::string& bytes) { return CheckChatStream(bytes, {1, false}); });
}

}  // namespace
}  // namespace tollgate::test
