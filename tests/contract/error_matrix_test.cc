// Every row of the error catalog on every inference endpoint, caused by a real request and compared
// exactly: status, code, type, param, headers, Retry-After, request_id; no engine text may get out.
// See docs/contract.md "Errors", docs/errors.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <tuple>

#include "tests/contract/error_cases.h"
#include "tests/contract/published_errors.h"
#include "tests/contract/target.h"

namespace tollgate::test {
namespace {

constexpr int64_t kUsd = 1'000'000'000;

struct Point {
  const EndpointForm* form;
  ErrorCase one;
};

const std::vector<Point>& Points() {
  static const std::vector<Point> points = [] {
    std::vector<Point> all;
    for (const EndpointForm& form : EndpointForms()) {
      for (ErrorCase& one : ErrorCases(form)) all.push_back({&form, std::move(one)});
    }
    return all;
  }();
  return points;
}

// Keys shared by any number of cases.
class Callers {
 public:
  explicit Callers(Target& target) : target_(target) {}

  std::string Secret(Caller caller) {
    const Json& keys = target_.facts["keys"];
    switch (caller) {
      case Caller::kNobody:
        return "";
      case Caller::kBroke:
        return keys["broke"].str();
      case Caller::kCapped:
        return keys["capped"].str();
      case Caller::kOverQuota:
        return keys["over_quota"].str();
      case Caller::kDisabled:
        return keys["disabled"].str();
      case Caller::kRevoked:
        return keys["revoked"].str();
      case Caller::kNarrow:
        return keys["narrow"].str();
      case Caller::kExpired:
        if (expired_.empty()) expired_ = MakeExpired();
        return expired_;
      default:
        return Good();
    }
  }
  ApiKey New(int64_t nano_usd, const KeyOptions& options) {
    return target_.cluster->NewCustomer(nano_usd, options);
  }

 private:
  // Changes the key from time to time: refusals of one key are bounded (docs/adr/0016).
  std::string Good() {
    constexpr int kUses = 20;
    if (good_uses_++ % kUses == 0) good_ = New(1000 * kUsd, {}).secret;
    return good_;
  }
  static int64_t WallUs() {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  std::string MakeExpired() {
    const int64_t at_us = WallUs() + 4'000'000;
    const std::string secret = New(kUsd, {.expires_at_us = at_us}).secret;
    EXPECT_NE(secret, "");
    EXPECT_TRUE(WaitUntil([&] { return WallUs() > at_us; }, 3000));
    return secret;
  }

  Target& target_;
  std::string expired_;
  std::string good_;
  int good_uses_ = 0;
};

class ErrorMatrixTest : public ::testing::TestWithParam<std::tuple<std::string, size_t>> {
 protected:
  void SetUp() override {
    ASSERT_EQ(target().failure, "");
    if (target().cluster == nullptr) GTEST_SKIP() << "needs a cluster of its own";
    MeetCaller();
  }

  const EndpointForm& form() const { return *Points()[std::get<1>(GetParam())].form; }
  const ErrorCase& one() const { return Points()[std::get<1>(GetParam())].one; }
  const PublishedError& row() const { return PublishedErrors().at(one().row); }
  Target& target() const { return TargetOf(std::get<0>(GetParam())); }

  // Creates a caller in the state that the case needs.
  void MeetCaller() {
    static std::map<std::string, Callers> callers;
    Callers& known = callers.try_emplace(std::get<0>(GetParam()), target()).first->second;
    good_ = known.Secret(Caller::kGood);
    secret_ = known.Secret(one().caller);
    switch (one().caller) {
      case Caller::kOneAMinute:
        secret_ = known.New(kUsd, {.limits = {.requests_per_minute = 1}}).secret;
        Succeed({});
        break;
      case Caller::kFewTokens:
        secret_ = known.New(kUsd, {.limits = {.tokens_per_minute = 20}}).secret;
        Succeed({.words = 200});
        break;
      case Caller::kOneAtATime:
        secret_ = known.New(kUsd, {.limits = {.concurrent_requests = 1}}).secret;
        StartEndless();
        break;
      case Caller::kKeyUsed:
        secret_ = known.New(kUsd, {}).secret;
        Succeed({});
        break;
      case Caller::kKeyRunning:
        StartSame(known.New(kUsd, {}));
        break;
      case Caller::kAllHeld:
        // Less than one slice of output: the running request holds all of it.
        secret_ = known.New(200'000, {}).secret;
        StartEndless();
        break;
      default:
        break;
    }
    // An engine is known to be unreachable once its health was checked.
    if (!form().unreachable_model.empty() && one().ask.model == form().unreachable_model) {
      const std::string body = form().Body(one().ask);
      (void)WaitUntil(
          [&] {
            return Http(target().port, "POST", form().path, Headers(""), body).status ==
                   row().status;
          },
          5000, 50);
    }
  }
  void Succeed(const Ask& ask) {
    const HttpResponse answer =
        Http(target().port, "POST", form().path, Headers(""), form().Body(ask));
    ASSERT_EQ(answer.status, 200) << answer.body;
  }
  // A chat that runs until the case is over.
  void StartEndless() {
    running_ = std::make_unique<HttpConnection>(target().port);
    running_->SendRequest(
        "POST", "/v1/chat/completions",
        {{"Authorization", "Bearer " + secret_}, {"Content-Type", "application/json"}},
        EndpointForms()[0].Body(
            {.script = R"({"tokens":1000,"hang_after_tokens":2})", .stream = true}));
    ASSERT_EQ(running_->ReadHead().status, 200);
  }

  // Sends the request of the case without reading its answer.
  void StartSame(const ApiKey& key) {
    secret_ = key.secret;
    running_ = std::make_unique<HttpConnection>(target().port);
    ASSERT_TRUE(running_->SendRequest("POST", form().path, Headers(""), one().body));
    ASSERT_TRUE(WaitUntil(
        [&] {
          const auto balance = target().cluster->Balance(key.workspace_id);
          return balance && balance->open_holds == 1;
        },
        5000, 20));
  }

  // name: sent as x-request-id; "": not sent.
  HeaderList Headers(const std::string& name) const {
    HeaderList headers = one().headers;
    for (auto& [field, value] : headers) {
      if (value == "$good") value = good_;
    }
    if (!secret_.empty()) headers.emplace_back("Authorization", "Bearer " + secret_);
    if (!name.empty()) headers.emplace_back("X-Request-Id", name);
    const bool typed = std::any_of(headers.begin(), headers.end(),
                                   [](const auto& h) { return h.first == "Content-Type"; });
    if (!typed) headers.emplace_back("Content-Type", "application/json");
    return headers;
  }

  void Try(bool stream, bool named) {
    SCOPED_TRACE(std::string(stream ? "streamed" : "plain") + (named ? ", named" : ", unnamed"));
    Ask ask = one().ask;
    ask.stream = stream;
    const std::string name = named ? "matrix." + one().name : "";
    const HttpResponse answer =
        Http(target().port, one().method, form().path + one().path_end, Headers(name),
             one().body.empty() ? form().Body(ask) : one().body);
    ASSERT_EQ(answer.status, row().status) << answer.body << answer.error;
    ExpectHeaders(answer, name);
    form().family == Family::kMessages ? ExpectMessages(answer, name) : ExpectOpenAi(answer);
    ExpectNoLeak(answer);
  }

  void ExpectHeaders(const HttpResponse& answer, const std::string& name) const {
    std::map<std::string, int> count;
    for (const auto& [field, value] : answer.headers) ++count[field];
    for (const char* once : {"x-request-id", "request-id", "content-type", "content-length"}) {
      EXPECT_EQ(count[once], 1) << once;
    }
    EXPECT_EQ(answer.header("content-type"), "application/json");
    EXPECT_EQ(answer.header("content-length"), std::to_string(answer.body.size()));
    EXPECT_FALSE(answer.header("x-request-id").empty());
    EXPECT_EQ(answer.header("request-id"), answer.header("x-request-id"));
    if (!name.empty()) EXPECT_EQ(answer.header("x-request-id"), name);
    EXPECT_EQ(count["x-should-retry"], 1);  // decision 40
    EXPECT_EQ(answer.header("x-should-retry"), row().retryable ? "true" : "false");
    const std::string& retry = answer.header("retry-after");
    if (!row().retryable || one().retry_after.empty()) {
      EXPECT_FALSE(answer.has_header("retry-after")) << retry;
    } else if (one().retry_after == "*" || !retry.empty()) {
      const int64_t seconds = std::atoll(retry.c_str());
      EXPECT_EQ(retry, std::to_string(seconds)) << "whole seconds";
      EXPECT_TRUE(seconds >= 1 && seconds <= 60) << retry;
    }
    if (one().retry_after.size() == 1 && std::isdigit(one().retry_after[0])) {
      EXPECT_EQ(retry, one().retry_after);
    }
  }

  static std::set<std::string> Names(const Json& object) {
    std::set<std::string> names;
    for (const Json::Member& member : object.members()) names.insert(member.first);
    EXPECT_EQ(names.size(), object.size()) << "duplicate member: " << object.Dump();
    return names;
  }

  void ExpectOpenAi(const HttpResponse& answer) const {
    const Json body = answer.json();
    EXPECT_EQ(Names(body), std::set<std::string>{"error"}) << answer.body;
    const Json& error = body["error"];
    std::set<std::string> members = {"code", "message", "type"};
    if (!one().param.empty()) members.insert("param");
    EXPECT_EQ(Names(error), members) << answer.body;
    EXPECT_EQ(error["code"].str(), row().code);
    EXPECT_EQ(error["type"].str(), row().openai_type);
    EXPECT_EQ(error["param"].str(), one().param);
    ExpectMessage(error["message"], one().openai_text);
  }

  void ExpectMessages(const HttpResponse& answer, const std::string& name) const {
    const Json body = answer.json();
    std::set<std::string> members = {"type", "error"};
    if (!name.empty()) members.insert("request_id");
    EXPECT_EQ(Names(body), members) << answer.body;
    EXPECT_EQ(body["type"].str(), "error");
    EXPECT_EQ(body["request_id"].str(), name);
    const Json& error = body["error"];
    EXPECT_EQ(Names(error), (std::set<std::string>{"code", "message", "type"})) << answer.body;
    EXPECT_EQ(error["code"].str(), row().code);
    EXPECT_EQ(error["type"].str(), row().messages_type);
    ExpectMessage(error["message"], one().messages_text);
    if (row().code == "bad_request") ExpectMessage(error["message"], one().param);
  }

  static void ExpectMessage(const Json& message, const std::string& fragment) {
    EXPECT_FALSE(message.str().empty());
    EXPECT_NE(message.str().find(fragment), std::string::npos) << message.Dump();
  }

  // The response contains neither the engine's text nor its address.
  void ExpectNoLeak(const HttpResponse& answer) const {
    std::string all = answer.body;
    for (const auto& [field, value] : answer.headers) all += "\n" + field + ": " + value;
    std::vector<std::string> secrets = {kEngineMark, "127.0.0.1", "vllm"};
    if (!secret_.empty()) secrets.push_back(secret_);
    for (const std::string& secret : secrets) {
      EXPECT_EQ(all.find(secret), std::string::npos) << secret << " in " << all;
    }
  }

 private:
  std::string good_;
  std::string secret_;
  std::unique_ptr<HttpConnection> running_;
};

TEST_P(ErrorMatrixTest, IsAnsweredAsPublished) {
  Try(false, true);
  Try(false, false);
  // Before a stream starts, errors are JSON with their status.
  if (form().streams && one().body.empty() && one().method == "POST") Try(true, true);
}

std::vector<std::string> OwnKinds() { return {"allinone", "tcp"}; }

INSTANTIATE_TEST_SUITE_P(Errors, ErrorMatrixTest,
                         ::testing::Combine(::testing::ValuesIn(OwnKinds()),
                                            ::testing::Range<size_t>(0, Points().size())),
                         [](const auto& info) {
                           const Point& point = Points()[std::get<1>(info.param)];
                           return std::get<0>(info.param) + "_" + point.form->name + "__" +
                                  point.one.name;
                         });

TEST(ErrorMatrix, CoversEveryRowOnEveryEndpointOrGivesAReason) {
  std::set<std::pair<std::string, std::string>> covered;
  for (const Point& point : Points()) {
    EXPECT_TRUE(PublishedErrors().contains(point.one.row)) << point.one.row;
    covered.emplace(point.form->name, point.one.row);
  }
  EXPECT_GE(PublishedErrors().size(), 18u);
  for (const EndpointForm& form : EndpointForms()) {
    for (const auto& [row, published] : PublishedErrors()) {
      const bool has = covered.contains({form.name, row});
      EXPECT_NE(has, !WhyNoCase(form, row).empty()) << form.name << ": " << row;
    }
  }
}

}  // namespace
}  // namespace tollgate::test
