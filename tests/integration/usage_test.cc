// GET /api/v1/usage against the charges of real requests, to the nano-USD. See decision 29,
// docs/contract.md "Usage record".
#include <chrono>
#include <map>

#include "tests/integration/system_test.h"

namespace tollgate::test {
namespace {

constexpr char kUsage[] = "/api/v1/usage";

int64_t WallUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// "2026-03-01T10:00:00.123456Z", or only its date.
std::string Utc(int64_t us, bool date_only = false) {
  const std::time_t seconds = us / 1'000'000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[48];
  const size_t size =
      std::strftime(text, sizeof(text), date_only ? "%Y-%m-%d" : "%Y-%m-%dT%H:%M:%S", &parts);
  if (date_only) return std::string(text, size);
  std::snprintf(text + size, sizeof(text) - size, ".%06dZ", static_cast<int>(us % 1'000'000));
  return text;
}

// The value of "0.000000001" in nano-USD; -1 unless the text is a decimal without redundant digits.
int64_t Nano(const Json& amount) {
  const std::string& text = amount.str();
  const size_t point = text.find('.');
  const std::string whole = text.substr(0, point);
  std::string decimals = point == std::string::npos ? "" : text.substr(point + 1);
  const bool plain = !whole.empty() && decimals.size() <= 9 &&
                     (whole + decimals).find_first_not_of("0123456789") == std::string::npos &&
                     (decimals.empty() == (point == std::string::npos)) &&
                     (decimals.empty() || decimals.back() != '0') &&
                     (whole.size() == 1 || whole[0] != '0');
  if (!amount.is_string() || !plain) return -1;
  decimals.resize(9, '0');
  return std::atoll(whole.c_str()) * kUsd + std::atoll(decimals.c_str());
}

struct Used {
  int64_t requests = 0, input = 0, cached = 0, output = 0, reasoning = 0, cost = 0;
  friend bool operator==(const Used&, const Used&) = default;
  void Add(const Used& other) {
    requests += other.requests;
    input += other.input;
    cached += other.cached;
    output += other.output;
    reasoning += other.reasoning;
    cost += other.cost;
  }
};

void PrintTo(const Used& used, std::ostream* out) {
  *out << used.requests << " requests, " << used.input << " (" << used.cached << ") in, "
       << used.output << " (" << used.reasoning << ") out, " << used.cost << " nano-USD";
}

Used ReadUsed(const Json& from) {
  return {from["requests"].integer(-1),         from["input_tokens"].integer(-1),
          from["cached_tokens"].integer(-1),    from["output_tokens"].integer(-1),
          from["reasoning_tokens"].integer(-1), Nano(from["cost"])};
}

class UsageTest : public SystemTest {
 protected:
  HttpResponse Get(const ApiKey& key, const std::string& query = "") {
    return Http(cluster().port(), "GET", kUsage + query,
                {{"Authorization", "Bearer " + key.secret}});
  }
  Json Report(const ApiKey& key, const std::string& query = "") {
    const HttpResponse answer = Get(key, query);
    EXPECT_EQ(answer.status, 200) << answer.body << answer.error;
    EXPECT_EQ(answer.header("content-type"), "application/json");
    EXPECT_FALSE(answer.header("x-request-id").empty());
    const Json report = answer.json();
    Used sum;
    for (const Json& bucket : report["buckets"].elements()) sum.Add(ReadUsed(bucket));
    EXPECT_EQ(sum, ReadUsed(report["totals"])) << "buckets must add up: " << answer.body;
    return report;
  }
  // Whether every loop of every gateway responds with it: new connections are distributed round
  // robin.
  bool Always(const ApiKey& key, int status) {
    for (int i = 0; i < 6; ++i) {
      if (Get(key).status != status) return false;
    }
    return true;
  }
  // One request and its usage record.
  Used Use(const ApiKey& key, const std::string& script, bool stream = false) {
    const std::string more = R"(,"x_sim":)" + script;
    const Json usage =
        stream ? ChatStream(key, R"(,"stream_options":{"include_usage":true})" + more).Usage()
               : Chat(key, more).json()["usage"];
    Used used{.requests = 1,
              .input = usage["prompt_tokens"].integer(),
              .cached = usage["prompt_tokens_details"]["cached_tokens"].integer(),
              .output = usage["completion_tokens"].integer(),
              .reasoning = usage["completion_tokens_details"]["reasoning_tokens"].integer()};
    EXPECT_GT(used.input, 0) << usage.Dump();
    used.cost = Charge(used.input, used.output);
    return used;
  }
};
INSTANTIATE_TEST_SUITE_P(Systems, UsageTest, kSystemsAndStores,
                         [](const auto& info) { return info.param; });

TEST_P(UsageTest, IsTheSumOfTheRequestsAndTheDifferenceOfTheBalance) {
  const ApiKey key = Customer();
  EXPECT_EQ(ReadUsed(Report(key)["totals"]), Used());
  Used expected;
  for (int tokens = 1; tokens <= 5; ++tokens) {
    const std::string count = std::to_string(tokens);
    const Used one = Use(key, R"({"tokens":)" + count + R"(,"cached_tokens":3})");
    expected.Add(one);
    // The engine reports how many of them were reasoning tokens.
    const std::string usage = R"({"prompt_tokens":)" + std::to_string(one.input) +
                              R"(,"completion_tokens":)" + std::to_string(4 + tokens) +
                              R"(,"completion_tokens_details":{"reasoning_tokens":)" + count + "}}";
    expected.Add(Use(
        key, R"({"tokens":4,"reasoning_tokens":)" + count + R"(,"usage":)" + usage + "}", true));
  }
  EXPECT_EQ(expected.reasoning, 15);
  EXPECT_EQ(expected.cached, 15);
  const int64_t spent = SpentOf(key);
  EXPECT_EQ(spent, expected.cost);
  const Json report = Report(key);
  EXPECT_EQ(ReadUsed(report["totals"]), expected);
  EXPECT_EQ(report["object"].str(), "usage_report");
  EXPECT_EQ(report["key"]["id"].str(), key.key_id);
  EXPECT_EQ(report["currency"].str(), "USD");
  EXPECT_EQ(Nano(report["balance"]["total"]), kUsd - spent);
  EXPECT_EQ(Nano(report["balance"]["available"]), kUsd - spent);
  EXPECT_EQ(Nano(report["balance"]["held"]), 0);
  EXPECT_EQ(Nano(report["month"]["spent"]), spent);
  EXPECT_EQ(report["month"]["month"].str(), Utc(WallUs(), true).substr(0, 7));
  for (const Json& bucket : report["buckets"].elements()) {
    EXPECT_EQ(bucket["model"].str(), "sim/model");
    EXPECT_EQ(bucket["date"].str().size(), 10u);
  }
  for (const char* range : {"?range=24h", "?range=7d", "?range=30d"}) {
    EXPECT_EQ(ReadUsed(Report(key, range)["totals"]), expected) << range;
  }
}

TEST_P(UsageTest, EveryEndpointIsReportedUnderItsModel) {
  const ApiKey key = Customer();
  const std::string user = R"(,"messages":[{"role":"user","content":"hello there"}]})";
  struct Call {
    const char* path;
    const char* model;
    std::string body;
    const char* input;
    const char* output;
  };
  const Call calls[] = {
      {kChat, "sim/model", user, "prompt_tokens", "completion_tokens"},
      {"/v1/responses", "sim/model", R"(,"input":"hello"})", "input_tokens", "output_tokens"},
      {"/v1/messages", "sim/vision", R"(,"max_tokens":9)" + user, "input_tokens", "output_tokens"},
      {"/v1/completions", "sim/text", R"(,"prompt":"hello"})", "prompt_tokens",
       "completion_tokens"},
      {"/v1/embeddings", "sim/embed", R"(,"input":["hello","there"]})", "prompt_tokens", "none"},
  };
  std::map<std::string, Used> expected;
  Used total;
  for (const Call& call : calls) {
    const HttpResponse answer = cluster().Post(
        key, call.path, R"({"model":")" + std::string(call.model) + "\"" + call.body);
    ASSERT_EQ(answer.status, 200) << call.path << answer.body;
    const Json usage = answer.json()["usage"];
    Used used{.requests = 1,
              .input = usage[call.input].integer(),
              .output = usage[call.output].integer()};
    EXPECT_GT(used.input, 0) << answer.body;
    used.cost = Charge(used.input, used.output);
    expected[call.model].Add(used);
    total.Add(used);
  }
  EXPECT_EQ(
      cluster().Post(key, "/v1/messages/count_tokens", R"({"model":"sim/model")" + user).status,
      200);
  EXPECT_EQ(SpentOf(key), total.cost);
  const Json report = Report(key);
  EXPECT_EQ(ReadUsed(report["totals"]), total);
  std::map<std::string, Used> found;
  for (const Json& bucket : report["buckets"].elements()) {
    found[bucket["model"].str()].Add(ReadUsed(bucket));
  }
  EXPECT_EQ(found, expected);
}

TEST_P(UsageTest, KeysAreSeparateAndAddUpToTheWorkspace) {
  const ApiKey one = Customer();
  const ApiKey two = cluster().NewKey(one.workspace_id);
  const Used first = Use(one, R"({"tokens":7})");
  Used second = Use(two, R"({"tokens":9})");
  second.Add(Use(two, R"({"tokens":11})"));
  const int64_t spent = SpentOf(one);
  const Json a = Report(one);
  const Json b = Report(two);
  EXPECT_EQ(ReadUsed(a["totals"]), first);
  EXPECT_EQ(ReadUsed(b["totals"]), second);
  EXPECT_EQ(first.cost + second.cost, spent);
  for (const char* shared : {"balance", "month"}) EXPECT_EQ(a[shared], b[shared]) << shared;
  EXPECT_EQ(Nano(a["month"]["spent"]), spent);
}

TEST_P(UsageTest, PeriodsSplitRequestsToTheMicrosecond) {
  const ApiKey key = Customer();
  const Used before = Use(key, R"({"tokens":3})");
  ASSERT_TRUE(cluster().WaitIdle(key.workspace_id));
  const int64_t cut_us = WallUs();
  const Used after = Use(key, R"({"tokens":5})");
  ASSERT_TRUE(cluster().WaitIdle(key.workspace_id));
  const std::string cut = Utc(cut_us);
  EXPECT_EQ(ReadUsed(Report(key, "?start=" + cut)["totals"]), after);
  EXPECT_EQ(
      ReadUsed(Report(key, "?start=" + Utc(cut_us - 3'600'000'000) + "&end=" + cut)["totals"]),
      before);
  const Json period =
      Report(key, "?end=" + cut + "&start=" + Utc(cut_us - 3'600'000'000))["period"];
  EXPECT_EQ(period["end"].str(), cut);
  Used both = before;
  both.Add(after);
  // A whole day is the sum of its parts.
  const std::string today = Utc(cut_us, true);
  const std::string day_after_tomorrow = Utc(cut_us + 2 * 86'400'000'000, true);
  EXPECT_EQ(ReadUsed(Report(key, "?start=" + today + "&end=" + day_after_tomorrow)["totals"]),
            both);
  EXPECT_EQ(ReadUsed(Report(key, "?end=" + today + "&start=2026-01-01")["totals"]), Used());
}

TEST_P(UsageTest, FreeRequestsAreNotCounted) {
  const ApiKey key = Customer();
  EXPECT_EQ(Chat(key, R"(,"x_sim":{"status":422})").status, 400);
  EXPECT_EQ(Chat(key, R"(,"max_tokens":0)").status, 200);
  EXPECT_EQ(Chat(key, R"(,"max_tokens":-1)").status, 400);
  EXPECT_EQ(SpentOf(key), 0);
  EXPECT_EQ(ReadUsed(Report(key)["totals"]), Used());
}

TEST_P(UsageTest, ShowsTheHoldOfARunningRequestAndTheCap) {
  const ApiKey key = Customer(kUsd, {.limits = {.concurrent_requests = 3}});
  EXPECT_TRUE(Report(key)["month"]["cap"].is_null());
  cluster().SetCap(key.workspace_id, 250'000'001);
  {
    HttpConnection connection(cluster().port());
    connection.SendRequest("POST", kChat, key.headers(),
                           ChatBody(R"(,"stream":true,"x_sim":{"tokens":2000,"token_ms":10})"));
    ASSERT_EQ(connection.ReadHead().status, 200);
    const Json report = Report(key);
    EXPECT_GT(Nano(report["balance"]["held"]), 0);
    EXPECT_EQ(report["balance"]["held"], report["month"]["held"]);
    EXPECT_EQ(Nano(report["balance"]["available"]),
              Nano(report["balance"]["total"]) - Nano(report["balance"]["held"]));
    EXPECT_EQ(report["month"]["cap"].str(), "0.250000001");
    EXPECT_EQ(report["limits"]["key"]["concurrent_requests"].Dump(),
              R"({"limit":3,"remaining":2})");
  }
  const int64_t spent = SpentOf(key);
  EXPECT_EQ(Nano(Report(key)["totals"]["cost"]), spent);
}

TEST_P(UsageTest, ShowsLimitsOfKeyAndWorkspaceAndTakesNothingFromThem) {
  const std::string workspace = cluster().NewWorkspace("", {.tokens_per_minute = 600});
  cluster().AddCredit(workspace, kUsd);
  const ApiKey key =
      cluster().NewKey(workspace, {.limits = {.requests_per_minute = 2, .concurrent_requests = 1}});
  for (int i = 0; i < 5; ++i) {
    const Json limits = Report(key)["limits"];
    EXPECT_EQ(limits["key"]["requests_per_minute"].Dump(), R"({"limit":2,"remaining":2})");
    EXPECT_EQ(limits["key"]["concurrent_requests"].Dump(), R"({"limit":1,"remaining":1})");
    EXPECT_TRUE(limits["key"]["tokens_per_minute"].is_null());
    EXPECT_EQ(limits["workspace"]["tokens_per_minute"].Dump(), R"({"limit":600,"remaining":600})");
    EXPECT_TRUE(limits["workspace"]["requests_per_minute"].is_null());
  }
  (void)Use(key, R"({"tokens":200})");
  const Json limits = Report(key)["limits"];
  EXPECT_EQ(limits["key"]["requests_per_minute"]["remaining"].integer(-1), 1);
  EXPECT_LT(limits["workspace"]["tokens_per_minute"]["remaining"].integer(), 600);
}

TEST_P(UsageTest, NeedsAKeyButNoCredit) {
  EXPECT_EQ(Nano(Report(Customer(0))["balance"]["available"]), 0);
  const ApiKey key = Customer();
  cluster().SetCap(key.workspace_id, 0);
  EXPECT_EQ(Report(key)["month"]["cap"].str(), "0");
  ExpectError(Http(cluster().port(), "GET", kUsage), 401, "invalid_api_key",
              "authentication_error");
  ExpectError(Http(cluster().port(), "GET", kUsage, {{"x-api-key", key.secret}}), 401,
              "invalid_api_key", "authentication_error");
  cluster().SetKeyState(key, Cluster::KeyState::kDisabled);
  ASSERT_TRUE(WaitUntil([&] { return Always(key, 403); }, 1000));
  ExpectError(Get(key), 403, "virtual_key_blocked", "permission_error");
  cluster().SetKeyState(key, Cluster::KeyState::kRevoked);
  ASSERT_TRUE(WaitUntil([&] { return Always(key, 401); }, 1000));
  const ApiKey expired = Customer(kUsd, {.expires_at_us = WallUs() + 4'000'000});
  ASSERT_NE(expired.secret, "");
  ASSERT_TRUE(WaitUntil([&] { return Always(expired, 401); }, 3000));
  ExpectError(Get(expired), 401, "invalid_api_key", "authentication_error");
}

TEST_P(UsageTest, BadParametersAreNamed) {
  const ApiKey key = Customer();
  const std::pair<const char*, const char*> rows[] = {
      {"?range=1y", "range"},
      {"?range=24h&end=2026-01-01", "range"},
      {"?start=yesterday", "start"},
      {"?start=2026-02-30", "start"},
      {"?end=2026-01-01T10:00", "end"},
      {"?start=2026-01-02&end=2026-01-01", "end"},
      {"?start=2024-01-01&end=2025-01-02", "start"},
      {"?start=%zz", "start"},
  };
  for (const auto& [query, param] : rows) {
    SCOPED_TRACE(query);
    ExpectError(Get(key, query), 400, "bad_request", "invalid_request_error", param);
  }
  EXPECT_EQ(Get(key, "?limit=5&unknown=%zz").status, 200);
}

TEST_P(UsageTest, WithoutTheLimiterRemainingIsNullAndWithoutBillingItIs503) {
  if (GetParam() != "tcp") GTEST_SKIP() << "its services cannot be stopped separately";
  const ApiKey key = Customer(kUsd, {.limits = {.requests_per_minute = 9}});
  ASSERT_EQ(Get(key).status, 200);
  cluster().process("ratelimit").Kill();
  EXPECT_EQ(Report(key)["limits"]["key"]["requests_per_minute"].Dump(),
            R"({"limit":9,"remaining":null})");
  EXPECT_EQ(cluster().Restart("ratelimit"), "");
  cluster().process("billing").Kill();
  const HttpResponse answer = Get(key);
  ExpectError(answer, 503, "service_unavailable", "service_unavailable");
  EXPECT_EQ(answer.header("retry-after"), "1");
  EXPECT_EQ(cluster().Restart("billing"), "");
  // Every loop reconnects.
  const auto whole = [&] {
    for (int i = 0; i < 6; ++i) {
      const Json limits = Get(key).json()["limits"]["key"];
      if (limits["requests_per_minute"]["remaining"].integer(-1) != 9) return false;
    }
    return true;
  };
  EXPECT_TRUE(WaitUntil(whole, 5000));
}

}  // namespace
}  // namespace tollgate::test
