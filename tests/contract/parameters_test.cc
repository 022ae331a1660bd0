// Numbers and JSON in every form, on every endpoint: valid requests run, others get a 400
// bad_request that names the parameter. See docs/contract.md "Endpoints" and "Cases of 400
// bad_request"; decisions 16 to 19.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "tests/contract/endpoint_forms.h"
#include "tests/contract/parameters_table.h"
#include "tests/contract/target.h"

namespace tollgate::test {
namespace {

const EndpointForm& FormOf(const std::string& name) {
  return *std::find_if(EndpointForms().begin(), EndpointForms().end(),
                       [&](const EndpointForm& form) { return form.name == name; });
}

class Caller {
 public:
  explicit Caller(Target& target)
      : target_(target), connection_(target.host, target.port, 20'000) {}

  HttpResponse Ask(const EndpointForm& form, const std::string& body) {
    const HeaderList headers = {{"Authorization", "Bearer " + target_.facts["keys"]["good"].str()},
                                {"Content-Type", "application/json"}};
    return connection_.Request("POST", form.path, headers, body);
  }

 private:
  Target& target_;
  HttpConnection connection_;
};

// A 400 bad_request in the family's envelope; param empty: it names no field.
void ExpectRefused(const HttpResponse& answer, const EndpointForm& form, const std::string& param) {
  EXPECT_EQ(answer.status, 400) << answer.body << answer.error;
  const Json body = answer.json();
  const Json& error = body["error"];
  EXPECT_EQ(error["code"].str(), "bad_request") << answer.body;
  EXPECT_EQ(error["type"].str(), "invalid_request_error") << answer.body;
  if (form.family == Family::kOpenAi) {
    EXPECT_EQ(error["param"].str(), param) << answer.body;
    EXPECT_EQ(error.has("param"), !param.empty());
  } else {
    EXPECT_FALSE(error.has("param")) << answer.body;
    EXPECT_NE(error["message"].str().find(param), std::string::npos) << answer.body;
  }
}

// The response is one token, to keep the test short.
Ask ShortAnswer() { return {.script = R"({"tokens":1})"}; }

// The form's body without the member of that name.
std::string BodyWith(const EndpointForm& form, const std::string& more, const std::string& name) {
  Ask ask = ShortAnswer();
  ask.more = more;
  std::string body = form.Body(ask);
  const std::string own = ",\"" + name + "\":64";
  if (const size_t at = body.find(own); name == form.limit && at != std::string::npos) {
    body.erase(at, own.size());
  }
  return body;
}

using Parameter = std::tuple<std::string, size_t>;

class NumericParameterTest : public ::testing::TestWithParam<Parameter> {
 protected:
  void SetUp() override {
    ASSERT_EQ(target().failure, "");
    if (!target().facts["simulated"].boolean()) GTEST_SKIP() << "needs the simulated engine";
  }
  Target& target() const { return TargetOf(std::get<0>(GetParam())); }
  const NumericParameter& one() const { return NumericParameters()[std::get<1>(GetParam())]; }
};

TEST_P(NumericParameterTest, AcceptsItsRangeAndIsNamedInEveryRefusal) {
  const EndpointForm& form = FormOf(one().endpoint);
  Caller caller(target());
  bool stream = false;
  for (const Spelling& spelling : SpellingsOf(one())) {
    SCOPED_TRACE(one().name + " " + spelling.text);
    std::string more = one().Write(spelling.text);
    // Before a stream starts, errors are JSON with their status.
    if (!spelling.good && form.streams && (stream = !stream)) more += ",\"stream\":true";
    const HttpResponse answer = caller.Ask(form, BodyWith(form, more, one().name));
    if (spelling.good) {
      EXPECT_EQ(answer.status, 200) << answer.body << answer.error;
    } else {
      ExpectRefused(answer, form, one().name);
    }
  }
}

TEST_P(NumericParameterTest, MalformedNumbersAreMalformedJson) {
  const EndpointForm& form = FormOf(one().endpoint);
  Caller caller(target());
  for (const char* text : {"NaN", "Infinity", "-Infinity", "01", "+1", ".5", "1.", "0x1", "1e"}) {
    SCOPED_TRACE(text);
    const std::string more = one().Write(text);
    ExpectRefused(caller.Ask(form, BodyWith(form, more, one().name)), form, "");
  }
}

INSTANTIATE_TEST_SUITE_P(Wire, NumericParameterTest,
                         ::testing::Combine(::testing::ValuesIn(TargetKinds()),
                                            ::testing::Range<size_t>(0,
                                                                     NumericParameters().size())),
                         [](const auto& info) {
                           const NumericParameter& one =
                               NumericParameters()[std::get<1>(info.param)];
                           return std::get<0>(info.param) + "_" + one.endpoint + "_" + one.name;
                         });

class BodyTest : public ::testing::TestWithParam<std::tuple<std::string, size_t>> {
 protected:
  void SetUp() override {
    ASSERT_EQ(target().failure, "");
    if (!target().facts["simulated"].boolean()) GTEST_SKIP() << "needs the simulated engine";
  }
  Target& target() const { return TargetOf(std::get<0>(GetParam())); }
  const EndpointForm& form() const { return EndpointForms()[std::get<1>(GetParam())]; }
  // The members of a valid body, without the braces.
  std::string Members() const {
    const std::string body = form().Body(ShortAnswer());
    return body.substr(1, body.size() - 2);
  }
};

TEST_P(BodyTest, MalformedJsonIsABadRequest) {
  Caller caller(target());
  for (const BadBody& bad : BadBodies()) {
    SCOPED_TRACE(bad.name);
    std::string body = bad.body;
    for (size_t at; (at = body.find("$B")) != std::string::npos;) body.replace(at, 2, Members());
    // All on one connection: a bad body does not close it.
    ExpectRefused(caller.Ask(form(), body), form(), "");
  }
}

TEST_P(BodyTest, UnusualButLegalJsonIsAccepted) {
  std::string deep = "1";
  for (int i = 0; i < 60; ++i) deep = "[" + deep + "]";
  Caller caller(target());
  for (const std::string& more :
       {std::string(R"("x":1e400)"), std::string(R"("x":-0)"), "\"x\":" + deep,
        std::string(R"("x":123456789012345678901234567890)"),
        std::string(R"("x":"\ud83d\ude00\u2028\uffff")"), std::string(R"("":null)"),
        std::string(R"("x":{"a":null,"A":null})"), std::string("\"\xc3\xa9\" : [ ] "),
        // Decision 38.
        std::string(R"("x":"\u0000")"), std::string(R"("\u0000":"a\u0000b")"),
        std::string(R"("x":"\ud83d")"), std::string(R"("x":"\ude00")"),
        std::string(R"("x":"\ude00\ud83d")"), std::string(R"("x":"\ud83dx")"),
        std::string(R"("x":"\ud83d\ud83d\ude00")"), std::string(R"("\ud83d":1)")}) {
    SCOPED_TRACE(more);
    const HttpResponse answer = caller.Ask(form(), " \n{" + Members() + " ,\t" + more + "}\r\n ");
    EXPECT_EQ(answer.status, 200) << answer.body << answer.error;
  }
}

INSTANTIATE_TEST_SUITE_P(Wire, BodyTest,
                         ::testing::Combine(::testing::ValuesIn(TargetKinds()),
                                            ::testing::Range<size_t>(0, EndpointForms().size())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" +
                                  EndpointForms()[std::get<1>(info.param)].name;
                         });

}  // namespace
}  // namespace tollgate::test
