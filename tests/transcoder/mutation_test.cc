// Broken and odd inputs give a result or an error, never a crash, and a decoded message can be
// encoded.
#include <gtest/gtest.h>

#include <random>

#include "services/dashboard/transcode/binding.h"
#include "services/dashboard/transcode/json_reader.h"
#include "services/dashboard/transcode/json_writer.h"
#include "services/dashboard/transcode/text.h"
#include "services/dashboard/transcode/transcoder.h"
#include "services/dashboard/transcode/update_mask.h"
#include "tollgate/testing/v1/everything.pb.h"

namespace tollgate::transcode {
namespace {

using tollgate::testing::v1::Everything;

const std::vector<std::string> kSeeds = {
    R"({"name":"a\u00e9\ud83d\ude00","int32Value":-1.5e3,"boolValue":true})",
    R"({"child":{"child":{"inner":{"tags":["a","b"],"number":"-9223372036854775808"}}}})",
    R"({"stringMap":{"a":"b"},"int64Map":{"-1":"7"},"innerMap":{"k":{"inner":{"tags":["z"]}}}})",
    R"({"timestamp":"2026-01-31T12:00:00.5+01:00","timestamps":[],"mask":"a,bC.dE"})",
    R"({"nope":{"a":{"b":[1,2]}},"bytesValue":"_-8","color":"COLOR_RED","colors":[1,"NOPE"]})",
    R"({"choiceInner":{"text":"x"},"optionalInt32":0,"colorMap":{"a":1}})"};
constexpr std::string_view kPieces[] = {"{",     "}",     "[",  "]",     ":",        ",", "\"",
                                        "null",  "1e999", "\\", "\\u00", "\xFF",     "-", "0.",
                                        "@type", "\"\"",  "{}", "\\ud8", "\x00\x01", "/", "%"};

std::string Mutated(std::mt19937& random) {
  std::string text = kSeeds[random() % kSeeds.size()];
  for (unsigned edits = 1 + random() % 6; edits > 0; --edits) {
    const size_t at = random() % (text.size() + 1);
    switch (random() % 5) {
      case 0:
        text.erase(at, 1 + random() % 8);
        break;
      case 1:
        text.insert(at, kPieces[random() % std::size(kPieces)]);
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(random());
        break;
      case 3: {
        const std::string& other = kSeeds[random() % kSeeds.size()];
        text.insert(at, other.substr(random() % other.size(), random() % 30));
        break;
      }
      default:
        text.insert(at, text.substr(random() % (text.size() + 1), random() % 20));
    }
  }
  return text;
}

TEST(MutationTest, Bodies) {
  std::mt19937 random(1);
  int accepted = 0;
  for (int i = 0; i < 60'000; ++i) {
    const std::string text = Mutated(random);
    const auto document = ParseBody(text);
    if (!document.ok()) continue;
    Everything message;
    (void)FieldPaths(document->root(), Everything::descriptor());
    if (!ReadMessage(document->root(), message).ok()) continue;
    ++accepted;
    const auto json = WriteMessage(message);
    if (!json.ok()) continue;
    const auto again = ParseBody(*json);
    ASSERT_TRUE(again.ok()) << *json;
    Everything back;
    ASSERT_TRUE(ReadMessage(again->root(), back).ok()) << *json;
    ASSERT_EQ(*WriteMessage(back), *json) << "from " << text;
  }
  EXPECT_GT(accepted, 1'000);
}

TEST(MutationTest, PathsAndQueries) {
  std::mt19937 random(2);
  const auto table = RouteTable::Make(ServicesOf("tollgate.testing.v1"));
  ASSERT_TRUE(table.ok()) << table.error();
  const std::string seeds[] = {"/testing/v1/query", "/testing/v1/everything/a:watch",
                               "/testing/v1/typed/rest/a/b/z:verb",
                               "/testing/v1/typed/time/2026-01-31T12:00:00Z"};
  const std::string queries[] = {"int32_value=5&inner.text=a+b%20c", "string_map[k]=v&strings=a",
                                 "timestamp=2026-01-31T12:00:00Z&mask=a,b"};
  int found = 0;
  for (int i = 0; i < 60'000; ++i) {
    std::string path = seeds[random() % std::size(seeds)];
    std::string query = queries[random() % std::size(queries)];
    for (std::string* text : {&path, &query}) {
      for (unsigned edits = random() % 4; edits > 0; --edits) {
        const size_t at = random() % (text->size() + 1);
        constexpr std::string_view kChars = "/:%.*[]=&;+0aZ\xFF{}\"-";
        if (random() % 2 == 0) {
          text->insert(at, 1, kChars[random() % kChars.size()]);
        } else {
          text->erase(at, 1);
        }
      }
    }
    const Unescaped decoded = PercentDecode(path, false);
    auto match = table->Find("GET", SplitPath(decoded.text), false);
    if (match.kind != RouteTable::Found::Kind::kRoute) continue;
    ++found;
    std::unique_ptr<google::protobuf::Message> message(
        google::protobuf::MessageFactory::generated_factory()
            ->GetPrototype(match.route->method->input_type())
            ->New());
    (void)Bind(*match.route, {.values = std::move(match.values), .query = query}, *message);
  }
  EXPECT_GT(found, 5'000);
}

}  // namespace
}  // namespace tollgate::transcode
