// Rights and limits of keys, by requests over HTTP at a real gateway with a process for each
// service. See docs/design/keys.md.
#include <gtest/gtest.h>

#include "tests/support/auth_admin.h"
#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"
#include "tollgate/admin/v1/keys.grpc.pb.h"

namespace tollgate::test {
namespace {

namespace pb = tollgate::admin::v1;

constexpr int64_t kUsd = 1'000'000'000;
constexpr char kChat[] = "/v1/chat/completions";
constexpr char kBody[] =
    R"({"model":"sim/model","max_tokens":1,"messages":[{"role":"user","content":"hi"}],)"
    R"("x_sim":{"tokens":1}})";
constexpr int kRefusalsPerMinute = 30;

class KeysTest : public ::testing::Test {
 protected:
  // One cluster for all cases; each case has its own keys.
  static void SetUpTestSuite() {
    files_ = new TempDir;
    WriteFile(OldPepper(), "an old pepper that nothing was made with before\n");
    WriteFile(files_->path() + "/seal", std::string(64, 'a') + "\n");
    engine_ = new EngineSim;
    ASSERT_TRUE(engine_->Start());
    ClusterOptions options;
    options.all_in_one = false;
    options.catalog = DefaultCatalog({engine_->base_url()});
    options.gateway_settings = {"trusted_proxies: [127.0.0.1/32]",
                                "legacy_key_prefixes: [old-corp-]"};
    options.auth_settings = {
        "retired_peppers: [{pepper: \"${file:" + OldPepper() + "}\"}]",
        "people: {seal_key_file: " + files_->path() + "/seal}",
        "key_policy: {refusals_per_minute: " + std::to_string(kRefusalsPerMinute) + "}"};
    cluster_ = new Cluster(options);
    ASSERT_EQ(cluster_->Start(60'000), "");
  }
  static void TearDownTestSuite() {
    EXPECT_EQ(cluster_->StopOrderly(), "");
    delete cluster_;
    delete engine_;
    delete files_;
  }
  static std::string OldPepper() { return files_->path() + "/old_pepper"; }
  void SetUp() override { ASSERT_NE(cluster_, nullptr); }

  static void RestartAuthAndGateway() {
    ASSERT_EQ(cluster_->Restart(std::vector<std::string>{"auth", "gateway"}, 30'000), "");
    // Waits until admin calls reach the new process.
    ASSERT_TRUE(WaitUntil([&] { return !cluster_->NewWorkspace().empty(); }, 10'000, 100));
  }

  static std::string NameOf(const ApiKey& key) {
    return "workspaces/" + key.workspace_id + "/keys/" + key.key_id;
  }
  template <typename Method, typename Request, typename Response>
  void Must(Method method, const Request& request, Response* response) {
    AuthAdmin admin({cluster_->admin_grpc_address("auth")});
    const grpc::Status status = admin.Call(method, request, response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  pb::Key Get(const ApiKey& key) {
    pb::GetKeyRequest request;
    request.set_name(NameOf(key));
    pb::Key found;
    Must(&pb::KeyService::Stub::GetKey, request, &found);
    return found;
  }
  // Returns "200", or the status and the code of the error. address: client address behind the
  // proxy.
  static std::string Chat(const ApiKey& key, const std::string& address = "",
                          const std::string& body = kBody) {
    HeaderList headers = key.headers();
    if (!address.empty()) headers.emplace_back("X-Forwarded-For", address);
    const HttpResponse answer = Http(cluster_->port(), "POST", kChat, headers, body);
    if (answer.status == 200) return "200";
    return std::to_string(answer.status) + " " + answer.json()["error"]["code"].str();
  }
  static bool ChatsSay(const ApiKey& key, const std::string& what, int64_t timeout_ms = 5'000) {
    return WaitUntil([&] { return Chat(key) == what; }, timeout_ms, 100);
  }

  static inline TempDir* files_ = nullptr;
  static inline EngineSim* engine_ = nullptr;
  static inline Cluster* cluster_ = nullptr;
};

TEST_F(KeysTest, BothKeysWorkWhileARotationOverlapsAndTheOldOneEnds) {
  const ApiKey old_key = cluster_->NewCustomer(kUsd);
  ASSERT_EQ(Chat(old_key), "200");
  pb::RotateKeyRequest request;
  request.set_name(NameOf(old_key));
  request.set_request_id("rotate-1");
  request.mutable_overlap()->set_seconds(4);
  pb::RotateKeyResponse rotated;
  Must(&pb::KeyService::Stub::RotateKey, request, &rotated);
  const int64_t rotated_us = MonotonicUs();
  const ApiKey new_key{old_key.workspace_id,
                       rotated.key().name().substr(rotated.key().name().rfind('/') + 1),
                       rotated.secret()};
  EXPECT_EQ(Chat(new_key), "200");
  const std::string during = Chat(old_key);
  // A pause of this machine must not look like the end of the overlap.
  if (MonotonicUs() - rotated_us < 3'500'000) {
    EXPECT_EQ(during, "200");
  }
  EXPECT_TRUE(ChatsSay(old_key, "401 invalid_api_key", 10'000));
  EXPECT_GE(MonotonicUs() - rotated_us, 3'500'000) << "not before the overlap has ended";
  EXPECT_EQ(Chat(new_key), "200");
}

TEST_F(KeysTest, AKeyWithAllowedAddressesIsRefusedElsewhere) {
  const ApiKey key = cluster_->NewCustomer(kUsd);
  pb::UpdateKeyRequest request;
  request.mutable_key()->set_name(NameOf(key));
  request.mutable_key()->add_allowed_addresses("198.51.100.0/24");
  request.mutable_key()->add_allowed_addresses("2001:db8::/32");
  request.mutable_update_mask()->add_paths("allowed_addresses");
  pb::Key changed;
  Must(&pb::KeyService::Stub::UpdateKey, request, &changed);
  ASSERT_TRUE(ChatsSay(key, "403 virtual_key_blocked")) << "the proxy itself is not in them";
  EXPECT_EQ(Chat(key, "198.51.100.7"), "200");
  EXPECT_EQ(Chat(key, "2001:db8:1::7"), "200");
  EXPECT_EQ(Chat(key, "198.51.101.7"), "403 virtual_key_blocked");
  EXPECT_EQ(Chat(key, "198.51.100.7, 203.0.113.9"), "403 virtual_key_blocked")
      << "the last address that is not a proxy counts, not what the client sent before it";
}

TEST_F(KeysTest, ANamespaceOfAllowedModelsHasItsModelsOnly) {
  const std::string workspace = cluster_->NewWorkspace();
  ASSERT_TRUE(cluster_->AddCredit(workspace, kUsd));
  EXPECT_EQ(Chat(cluster_->NewKey(workspace, {.allowed_models = {"sim/*"}})), "200");
  EXPECT_EQ(Chat(cluster_->NewKey(workspace, {.allowed_models = {"other/*", "sim/vision"}})),
            "403 model_blocked");
}

TEST_F(KeysTest, AnImportedKeyOfAnotherSystemIsUsedForAChat) {
  const std::string workspace = cluster_->NewWorkspace();
  ASSERT_TRUE(cluster_->AddCredit(workspace, kUsd));
  const ApiKey imported{workspace, "", "old-corp-0123456789abcdefghijklmnop"};
  const ApiKey unknown{workspace, "", "old-corp-ponmlkjihgfedcba9876543210"};
  const ApiKey other_prefix{workspace, "", "new-corp-0123456789abcdefghijklmnop"};
  ASSERT_TRUE(cluster_->ImportKeys(workspace, {imported.secret, other_prefix.secret}));
  EXPECT_EQ(Chat(imported), "200");
  EXPECT_EQ(Chat(unknown), "401 invalid_api_key");
  EXPECT_EQ(Chat(other_prefix), "401 invalid_api_key") << "its prefix is not a legacy one";
}

TEST_F(KeysTest, KeysOfARetiredPepperGoOnWorking) {
  const ApiKey used = cluster_->NewCustomer(kUsd), unused = cluster_->NewCustomer(kUsd);
  ASSERT_EQ(Chat(used), "200");
  const std::string pepper_file = cluster_->dir() + "/pepper";
  WriteFile(OldPepper(), ReadFile(pepper_file));
  WriteFile(pepper_file, "another pepper for tests that is longer than 32 characters\n");
  // Restarts the gateway as well, so that its cache is empty.
  ASSERT_NO_FATAL_FAILURE(RestartAuthAndGateway());
  EXPECT_EQ(Chat(used), "200");
  EXPECT_EQ(Chat(unused), "200");
  const ApiKey made_later = cluster_->NewCustomer(kUsd);
  EXPECT_EQ(Chat(made_later), "200");
  // Keys that were used have been rehashed: they work without the old pepper.
  WriteFile(OldPepper(), "an old pepper that nothing was made with before\n");
  ASSERT_NO_FATAL_FAILURE(RestartAuthAndGateway());
  EXPECT_EQ(Chat(used), "200");
  EXPECT_EQ(Chat(made_later), "200");
}

TEST_F(KeysTest, AReportedLeakDisablesTheKeyWithinASecond) {
  const ApiKey key = cluster_->NewCustomer(kUsd);
  ASSERT_EQ(Chat(key), "200");
  pb::ReportLeakedKeyRequest request;
  request.set_secret(key.secret);
  request.set_source("a public repository");
  pb::ReportLeakedKeyResponse nothing;
  Must(&pb::KeyService::Stub::ReportLeakedKey, request, &nothing);
  EXPECT_TRUE(WaitUntil([&] { return Chat(key) == "403 virtual_key_blocked"; }, 1'000, 10));
  EXPECT_EQ(Get(key).state(), pb::KEY_STATE_DISABLED);
}

// The gateway reports refusals every 20 s.
TEST_F(KeysTest, AKeyWithTooManyRefusalsIsDisabled) {
  const ApiKey key = cluster_->NewCustomer(kUsd);
  const std::string unknown_model =
      R"({"model":"sim/none","messages":[{"role":"user","content":"hi"}]})";
  // Above the threshold even if a minute ends in between.
  for (int i = 0; i < 2 * (kRefusalsPerMinute + 1); ++i) {
    ASSERT_NE(Chat(key, "", unknown_model), "200");
  }
  EXPECT_TRUE(WaitUntil([&] { return Get(key).state() == pb::KEY_STATE_DISABLED; }, 60'000, 200));
  EXPECT_TRUE(WaitUntil([&] { return Chat(key) == "403 virtual_key_blocked"; }, 2'000, 10));
}

TEST_F(KeysTest, TheLastUseIsAtMostAMinuteBehind) {
  const ApiKey key = cluster_->NewCustomer(kUsd);
  EXPECT_FALSE(Get(key).has_last_used_time());
  const int64_t before = SystemClock::Get().WallUs() / 1'000'000;
  ASSERT_EQ(Chat(key), "200");
  const int64_t after = SystemClock::Get().WallUs() / 1'000'000;
  pb::Key found;
  ASSERT_TRUE(WaitUntil(
      [&] {
        found = Get(key);
        return found.has_last_used_time();
      },
      60'000, 200));
  EXPECT_GE(found.last_used_time().seconds(), before);
  EXPECT_LE(found.last_used_time().seconds(), after);
  EXPECT_EQ(found.requests_24h(), 1);
}

}  // namespace
}  // namespace tollgate::test
