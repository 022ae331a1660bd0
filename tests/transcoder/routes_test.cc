// Routes: the grammar of templates, and matching by the rule "the last registered that matches
// wins".
#include "services/dashboard/transcode/routes.h"

#include <google/api/annotations.pb.h>
#include <google/protobuf/any.pb.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/empty.pb.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/wrappers.pb.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <regex>

#include "services/dashboard/transcode/transcoder.h"
#include "tollgate/testing/v1/everything.pb.h"

namespace tollgate::transcode {
namespace {

using Kind = RouteTable::Found::Kind;

TEST(RoutesTest, BadTemplatesAreRefused) {
  for (const char* text : {"", "a", "/", "//", "/a/", "/{", "/{a", "/{}", "/{a=}", "/{a=b/{c}}",
                           "/{a}}", "/**/b/**", "/a b", "/a:", "/{a=*/}", "/{a=**}/{b=**}"}) {
    EXPECT_FALSE(PathTemplate::Parse(text).ok()) << text;
  }
}

std::string Matched(const std::string& text, const std::string& path) {
  std::vector<std::string> values;
  const auto parsed = PathTemplate::Parse(text);
  if (!parsed.ok()) return parsed.error();
  switch (parsed->Match(SplitPath(path), &values)) {
    case PathTemplate::Outcome::kMismatch:
      return "no";
    case PathTemplate::Outcome::kOnlyVerb:
      return "only verb";
    case PathTemplate::Outcome::kMatch:
      break;
  }
  std::string all = "yes";
  for (const std::string& value : values) all += " [" + value + "]";
  return all;
}

TEST(RoutesTest, Matching) {
  EXPECT_EQ(Matched("/{name=shelves/*}", "/shelves/a"), "yes [shelves/a]");
  EXPECT_EQ(Matched("/{name=shelves/*}", "/shelves/"), "yes [shelves/]");
  EXPECT_EQ(Matched("/{name=shelves/*}", "/shelves"), "no");
  EXPECT_EQ(Matched("/{name=shelves/*}", "/shelves/a/"), "no");
  EXPECT_EQ(Matched("/{name=shelves/*}", "/shelves/a1:archive"), "yes [shelves/a1:archive]");
  EXPECT_EQ(Matched("/{name=shelves/*}:archive", "/shelves/a1:archive"), "yes [shelves/a1]");
  EXPECT_EQ(Matched("/{name=shelves/*}:archive", "/shelves/:archive"), "only verb");
  EXPECT_EQ(Matched("/{path=files/**}", "/files"), "yes [files/]");
  EXPECT_EQ(Matched("/{path=files/**}", "/files/"), "yes [files/]");
  EXPECT_EQ(Matched("/{path=files/**}", "/files/a//b"), "yes [files/a//b]");
  EXPECT_EQ(Matched("/{a}/**/{b}", "/x/y"), "yes [x] [y]");
  EXPECT_EQ(Matched("/{a}/{rest=**}/z:go", "/x/1/2/z:go"), "yes [x] [1/2]");
  EXPECT_EQ(Matched("/v1/usage:query", "/v1/usage:query"), "yes");
}

// Go's algorithm in its simplest form: tries each way to split.
bool NaiveMatch(const std::vector<std::string>& pattern, const std::string& verb,
                std::vector<std::string> path) {
  if (!verb.empty()) {
    std::string& last = path.back();
    if (last.size() <= verb.size() + 1 || !last.ends_with(":" + verb)) return false;
    last.resize(last.size() - verb.size() - 1);
  }
  const std::function<bool(size_t, size_t)> from = [&](size_t p, size_t s) {
    if (p == pattern.size()) return s == path.size();
    if (pattern[p] == "**") {
      for (size_t end = s; end <= path.size(); ++end) {
        if (from(p + 1, end)) return true;
      }
      return false;
    }
    return s < path.size() && (pattern[p] == "*" || pattern[p] == path[s]) && from(p + 1, s + 1);
  };
  return from(0, 0);
}

TEST(RoutesTest, TheLastRegisteredThatMatchesWins) {
  std::mt19937 random(20261123);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  struct Plain {
    std::string method;
    std::vector<std::string> segments;
    std::string verb;
  };
  int matched = 0, other = 0;
  for (int round = 0; round < 400; ++round) {
    RouteTable table;
    std::vector<Plain> plain;
    for (int i = 0; i < 12; ++i) {
      Plain one{pick(2) == 0 ? "GET" : "POST", {}, pick(3) == 0 ? (pick(2) ? "x" : "y") : ""};
      bool deep = false;
      for (int s = 1 + pick(4); s > 0; --s) {
        const int kind = pick(6);
        std::string segment = kind == 0 ? "*" : kind == 1 && !deep ? "**" : kind < 4 ? "a" : "b";
        deep = deep || segment == "**";
        one.segments.push_back(std::move(segment));
      }
      std::string text;
      for (const std::string& segment : one.segments) text += "/" + segment;
      if (!one.verb.empty()) text += ":" + one.verb;
      Route route;
      route.http_method = one.method;
      auto parsed = PathTemplate::Parse(text);
      ASSERT_TRUE(parsed.ok()) << parsed.error();
      route.path = std::move(*parsed);
      route.variables.resize(plain.size());  // marks the route that matched
      table.Add(std::move(route));
      plain.push_back(std::move(one));
    }
    for (int i = 0; i < 50; ++i) {
      std::vector<std::string> path;
      for (int s = 1 + pick(4); s > 0; --s) path.push_back(pick(5) == 0 ? "" : pick(2) ? "a" : "b");
      // A segment that is only a verb ends the search at once; it has a test of its own.
      if (pick(3) == 0 && !path.back().empty()) path.back() += pick(2) ? ":x" : ":y";
      const std::string method = pick(2) == 0 ? "GET" : "POST";
      int expected = -1;
      bool others = false;
      for (size_t r = 0; r < plain.size(); ++r) {
        if (!NaiveMatch(plain[r].segments, plain[r].verb, path)) continue;
        if (plain[r].method == method) expected = static_cast<int>(r);
        others = others || plain[r].method != method;
      }
      const auto found = table.Find(method, path, false);
      if (expected >= 0) {
        ASSERT_EQ(found.kind, Kind::kRoute);
        ASSERT_EQ(found.route->variables.size(), static_cast<size_t>(expected));
        ++matched;
      } else {
        ASSERT_EQ(found.kind, others ? Kind::kOtherMethod : Kind::kNotFound);
        other += others ? 1 : 0;
      }
    }
  }
  EXPECT_GT(matched, 1'000);
  EXPECT_GT(other, 300);
}

// A path that the template matches, with "q" for each wildcard.
std::string Sample(const google::api::HttpRule& rule) {
  std::string text = rule.get() + rule.put() + rule.post() + rule.delete_() + rule.patch();
  text = std::regex_replace(text, std::regex(R"(\{[\w.]+=([^}]*)\})"), "$1");
  text = std::regex_replace(text, std::regex(R"(\{[\w.]+\})"), "q");
  return std::regex_replace(text, std::regex(R"(\*+)"), "q");
}

// Routes may overlap: "statements/*" also matches "statements/a:download", and "models/**" matches
// the list of models. Then the narrower one must be declared later.
TEST(RoutesTest, EveryRouteOfTheAdminApiIsReachedByItsOwnPath) {
  const auto table = RouteTable::Make(ServicesOf("tollgate.admin.v1"));
  ASSERT_TRUE(table.ok()) << table.error();
  size_t count = 0;
  for (const auto& [method, routes] : table->routes()) {
    for (const Route& route : routes) {
      ++count;
      const auto& rule = route.method->options().GetExtension(google::api::http);
      if (rule.additional_bindings_size() > 0) continue;
      const std::string sample = Sample(rule);
      const auto found = table->Find(method, SplitPath(sample), false);
      ASSERT_EQ(found.kind, Kind::kRoute) << sample;
      EXPECT_EQ(found.route, &route)
          << method << " " << sample << " of " << route.method->full_name() << " leads to "
          << found.route->method->full_name();
    }
  }
  EXPECT_GT(count, 40U);
}

// The text of a message with one field, for a FileDescriptorProto.
std::string OneField(const std::string& name, const std::string& type, bool repeated = false) {
  const std::string kind =
      type.starts_with("TYPE_") ? type : "TYPE_MESSAGE type_name: '." + type + "'";
  return "message_type { name: '" + name + "' field { name: 'value' number: 1 label: LABEL_" +
         (repeated ? "REPEATED" : "OPTIONAL") + " type: " + kind + " } }";
}

// The error of a table with one method, "" if there is none.
std::string ErrorOf(const std::string& messages, const std::string& rule,
                    const std::string& input = "x.In", const std::string& output = "x.Out") {
  google::protobuf::FileDescriptorProto file;
  const std::string text =
      "name: 'x.proto' package: 'x' syntax: 'proto3' dependency: 'google/protobuf/any.proto' "
      "dependency: 'google/protobuf/duration.proto' dependency: 'google/protobuf/empty.proto' "
      "dependency: 'google/protobuf/field_mask.proto' dependency: 'google/protobuf/struct.proto' "
      "dependency: 'google/protobuf/timestamp.proto' dependency: 'google/protobuf/wrappers.proto' "
      "service { name: 'S' method { name: 'M' input_type: '." +
      input + "' output_type: '." + output + "' options { [google.api.http] { " + rule +
      " } } } }" + messages;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &file)) << text;
  google::protobuf::DescriptorPool pool(google::protobuf::DescriptorPool::generated_pool());
  const auto* built = pool.BuildFile(file);
  if (built == nullptr) return "the file is not valid";
  const auto table = RouteTable::Make({built->service(0)});
  return table.ok() ? "" : table.error();
}

TEST(RoutesTest, FieldsOfAKindThatIsNotKnownAreRefused) {
  const std::string post = "post: '/x' body: '*'", get = "get: '/x'";
  const std::string empty = "message_type { name: 'Out' }";
  for (const char* type :
       {"TYPE_BOOL", "TYPE_STRING", "TYPE_BYTES", "TYPE_INT32", "TYPE_INT64", "TYPE_UINT64",
        "google.protobuf.Timestamp", "google.protobuf.FieldMask"}) {
    EXPECT_EQ(ErrorOf(OneField("In", type) + empty, post), "") << type;
    EXPECT_EQ(ErrorOf(OneField("In", type) + empty, get), "") << type;
  }
  const std::string refusal = "x.S.M: x.In.value is of a kind that is not served";
  for (const char* type :
       {"TYPE_FLOAT", "TYPE_DOUBLE", "google.protobuf.Any", "google.protobuf.Struct",
        "google.protobuf.Value", "google.protobuf.ListValue", "google.protobuf.Empty",
        "google.protobuf.Int32Value", "google.protobuf.StringValue", "google.protobuf.BoolValue",
        "TYPE_ENUM type_name: '.google.protobuf.NullValue'"}) {
    const std::string in = OneField("In", type);
    EXPECT_EQ(ErrorOf(in + empty, post), refusal) << type;
    EXPECT_EQ(ErrorOf(in + empty, get), refusal) << type;
    EXPECT_EQ(ErrorOf(in + empty, post, "x.Out", "x.In"), refusal) << type << " in an answer";
    EXPECT_EQ(ErrorOf(in + empty + OneField("Around", "x.In", true), post, "x.Around"), refusal)
        << type << " in a list";
  }
  const std::string keys =
      "message_type { name: 'In' field { name: 'value' number: 1 label: LABEL_REPEATED "
      "type: TYPE_MESSAGE type_name: '.x.In.ValueEntry' } nested_type { name: 'ValueEntry' "
      "options { map_entry: true } "
      "field { name: 'key' number: 1 label: LABEL_OPTIONAL type: TYPE_INT32 } "
      "field { name: 'value' number: 2 label: LABEL_OPTIONAL type: TYPE_STRING } } }";
  EXPECT_EQ(ErrorOf(keys + empty, post), refusal);
  const std::string duration = OneField("In", "google.protobuf.Duration");
  EXPECT_EQ(ErrorOf(duration + empty, post), "");
  EXPECT_EQ(ErrorOf(duration + empty, get), "x.S.M: x.In.value: a duration cannot be in a query");
  EXPECT_EQ(ErrorOf(duration + empty, "get: '/x/{value}'"),
            "x.S.M: value cannot be a part of the path");
}

// Fails when a proto of the admin API gets a field of a kind that the transcoder does not know.
TEST(RoutesTest, EveryFieldOfTheAdminApiIsOfAKnownKind) {
  const auto table = RouteTable::Make(ServicesOf("tollgate.admin.v1"));
  EXPECT_TRUE(table.ok()) << table.error();
}

TEST(RoutesTest, ServicesAreInTheOrderOfTheirFiles) {
  const auto services = ServicesOf("tollgate.admin.v1");
  for (size_t i = 1; i < services.size(); ++i) {
    EXPECT_LE(services[i - 1]->file()->name(), services[i]->file()->name());
  }
  EXPECT_EQ(ServicesOf("tollgate.testing.v1").size(), 1U);
  EXPECT_TRUE(ServicesOf("no.such.package").empty());
}

}  // namespace
}  // namespace tollgate::transcode
