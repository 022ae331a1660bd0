#include "services/dashboard/http/admin_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/utc_text.h"

namespace tollgate::dashboard {
namespace {

using ::testing::ElementsAre;

http::HttpRequest Request(const std::string& method, const std::string& path,
                          const std::string& body = "", const std::string& query = "") {
  return {.method = method, .path = std::string(kAdminPath) + path, .query = query, .body = body};
}

template <typename Message>
Message Parsed(const http::HttpRequest& request) {
  auto call = ParseAdminCall(request);
  if (!call) {
    ADD_FAILURE() << call.error().ToString();
    return {};
  }
  const Message* message = std::get_if<Message>(&*call);
  if (!message) ADD_FAILURE() << "the call has another type";
  return message ? *message : Message();
}

// The parameter that a refusal names, or "accepted".
std::string Refused(const http::HttpRequest& request) {
  const auto call = ParseAdminCall(request);
  if (call) return "accepted";
  return call.error().id == ErrorId::kBadRequest ? call.error().param : "not found";
}

TEST(AdminCall, CreateWorkspace) {
  const auto call = Parsed<auth::v1::CreateWorkspaceRequest>(Request(
      "POST", "workspaces",
      R"({"workspace_id":"team","name":"Team","limits":{"requests_per_minute":60},"request_id":"r"})"));
  EXPECT_EQ(call.workspace_id(), "team");
  EXPECT_EQ(call.name(), "Team");
  EXPECT_EQ(call.limits().requests_per_minute(), 60);
  EXPECT_EQ(call.request_id(), "r");
  EXPECT_EQ(call.actor(), "dashboard");
}

TEST(AdminCall, CreateKey) {
  const auto call = Parsed<auth::v1::CreateKeyRequest>(Request(
      "POST", "keys",
      R"({"workspace_id":"team","expires_at":"2027-01-31T12:00:00Z","allowed_models":["a/b"],
                  "limits":{"tokens_per_minute":1e3,"concurrent_requests":5}})"));
  EXPECT_EQ(call.workspace_id(), "team");
  EXPECT_EQ(UtcText(call.expires_at_us()), "2027-01-31T12:00:00Z");
  EXPECT_THAT(call.allowed_models(), ElementsAre("a/b"));
  EXPECT_EQ(call.limits().tokens_per_minute(), 1000);
  EXPECT_EQ(call.limits().concurrent_requests(), 5);
  EXPECT_EQ(call.request_id().size(), 32u);  // generated: the service client may retry the call
}

TEST(AdminCall, KeyStates) {
  const auto off = Parsed<auth::v1::SetKeyStateRequest>(
      Request("POST", "keys/0123456789AB/disable", R"({"reason":"leaked"})"));
  EXPECT_EQ(off.key_id(), "0123456789AB");
  EXPECT_EQ(off.state(), auth::v1::KEY_STATE_DISABLED);
  EXPECT_EQ(off.reason(), "leaked");
  EXPECT_EQ(Parsed<auth::v1::SetKeyStateRequest>(Request("POST", "keys/a/enable")).state(),
            auth::v1::KEY_STATE_ACTIVE);
  EXPECT_EQ(Parsed<auth::v1::SetKeyStateRequest>(Request("POST", "keys/a/revoke")).state(),
            auth::v1::KEY_STATE_REVOKED);
}

TEST(AdminCall, Credit) {
  const auto call = Parsed<billing::v1::AddCreditRequest>(
      Request("POST", "workspaces/team/credit", R"({"amount_usd":"12.5","granted":true})"));
  EXPECT_EQ(call.workspace_id(), "team");
  EXPECT_EQ(call.amount_nano_usd(), 12'500'000'000);
  EXPECT_TRUE(call.granted());
}

// Amounts are text: a JSON number may already have lost digits to floating point.
TEST(AdminCall, AmountsAreDecimalTextAboveZero) {
  for (const char* bad : {"5", "5.0", "\"0\"", "\"-1\"", "\"1e3\"", "\"1.0000000001\"", "\"\"",
                          "\" 1\"", "\"9999999999999\"", "null", "true", "[\"1\"]"}) {
    EXPECT_EQ(Refused(Request("POST", "workspaces/w/credit",
                              std::string("{\"amount_usd\":") + bad + "}")),
              "amount_usd")
        << bad;
  }
  EXPECT_EQ(Refused(Request("POST", "workspaces/w/credit")), "amount_usd");
}

TEST(AdminCall, TheCapIsRemovedByNullOnly) {
  const auto set =
      Parsed<billing::v1::SetCapRequest>(Request("PUT", "workspaces/w/cap", R"({"cap_usd":"0"})"));
  EXPECT_TRUE(set.has_cap_nano_usd());
  EXPECT_EQ(set.cap_nano_usd(), 0);
  EXPECT_FALSE(
      Parsed<billing::v1::SetCapRequest>(Request("PUT", "workspaces/w/cap", R"({"cap_usd":null})"))
          .has_cap_nano_usd());
  EXPECT_EQ(Refused(Request("PUT", "workspaces/w/cap")), "cap_usd");
  EXPECT_EQ(Refused(Request("PUT", "workspaces/w/cap", R"({"cap_usd":"-1"})")), "cap_usd");
  EXPECT_EQ(Refused(Request("PUT", "workspaces/w/cap", R"({"cap_usd":10})")), "cap_usd");
}

TEST(AdminCall, Reads) {
  Parsed<auth::v1::ListWorkspacesRequest>(Request("GET", "workspaces"));
  Parsed<catalog::v1::GetCatalogRequest>(Request("GET", "catalog"));
  EXPECT_EQ(
      Parsed<billing::v1::GetBalanceRequest>(Request("GET", "workspaces/w/balance")).workspace_id(),
      "w");
  EXPECT_EQ(Parsed<auth::v1::ListKeysRequest>(Request("GET", "keys", "", "workspace_id=w"))
                .workspace_id(),
            "w");
  const auto audit = Parsed<auth::v1::ListAuditEventsRequest>(
      Request("GET", "audit", "", "limit=5&workspace_id=w"));
  EXPECT_EQ(audit.limit(), 5);
  EXPECT_EQ(audit.workspace_id(), "w");
  EXPECT_EQ(Parsed<billing::v1::VerifyLedgerRequest>(
                Request("POST", "ledger/verify", R"({"workspace_id":"w"})"))
                .workspace_id(),
            "w");
  Parsed<billing::v1::VerifyLedgerRequest>(Request("POST", "ledger/verify"));
}

TEST(AdminCall, UnknownFieldsAndWrongTypesAreRefusedByName) {
  EXPECT_EQ(Refused(Request("POST", "keys", R"({"workspace_id":"w","expire":1})")), "expire");
  EXPECT_EQ(Refused(Request("POST", "keys", R"({"workspace_id":5})")), "workspace_id");
  EXPECT_EQ(Refused(Request("POST", "keys", "{}")), "workspace_id");
  EXPECT_EQ(Refused(Request("POST", "keys", R"({"workspace_id":"w","limits":{"rpm":1}})")),
            "limits.rpm");
  EXPECT_EQ(Refused(Request("POST", "keys", R"({"workspace_id":"w","limits":[]})")), "limits");
  EXPECT_EQ(Refused(Request("POST", "keys",
                            R"({"workspace_id":"w","limits":{"tokens_per_minute":1.5}})")),
            "limits.tokens_per_minute");
  EXPECT_EQ(Refused(Request("POST", "keys", R"({"workspace_id":"w","allowed_models":"a/b"})")),
            "allowed_models");
  EXPECT_EQ(Refused(Request("POST", "keys", R"({"workspace_id":"w","allowed_models":[1]})")),
            "allowed_models");
  for (const std::string time : {"tomorrow", "2027-01-31", "1969-12-31T23:59:59Z"}) {
    EXPECT_EQ(Refused(Request("POST", "keys",
                              "{\"workspace_id\":\"w\",\"expires_at\":\"" + time + "\"}")),
              "expires_at");
  }
  EXPECT_EQ(
      Refused(Request("POST", "workspaces/w/credit", R"({"amount_usd":"1","granted":"yes"})")),
      "granted");
  for (const char* body : {"[]", "5", "{", "{\"a\":1,\"a\":2}", "nul", "\xff"}) {
    EXPECT_EQ(Refused(Request("POST", "workspaces", body)), "") << body;
  }
}

TEST(AdminCall, QueryParametersAreStrict) {
  EXPECT_EQ(Refused(Request("GET", "keys", "", "limit=5")), "limit");
  EXPECT_EQ(Refused(Request("GET", "keys", "", "workspace_id=a%2fb")), "workspace_id");
  EXPECT_EQ(Refused(Request("GET", "keys", "", "workspace_id")), "workspace_id");
  EXPECT_EQ(Refused(Request("GET", "audit", "", "limit=0")), "limit");
  EXPECT_EQ(Refused(Request("GET", "audit", "", "limit=99999999999")), "limit");
  EXPECT_EQ(Refused(Request("GET", "workspaces", "", "x=1")), "");
  EXPECT_EQ(Refused(Request("POST", "workspaces", "{}", "x=1")), "");
}

TEST(AdminCall, OtherPathsAndMethodsAreNotFound) {
  for (const char* path :
       {"", "/", "workspaces/", "workspaces//balance", "workspaces/../balance", "workspaces/a",
        "workspaces/a%62/balance", "keys/x/destroy", "keys/x/disable/", "ledger", "catalog/x"}) {
    EXPECT_EQ(Refused(Request("GET", path)), "not found") << path;
    EXPECT_EQ(Refused(Request("POST", path)), "not found") << path;
  }
  EXPECT_EQ(Refused(Request("DELETE", "workspaces")), "not found");
  EXPECT_EQ(Refused(Request("PUT", "workspaces", "{}")), "not found");
  EXPECT_EQ(Refused(Request("GET", "keys/a/revoke")),
            "not found");  // a GET must not change anything
  EXPECT_EQ(Refused(Request("GET", "workspaces/" + std::string(64, 'a') + "/balance")),
            "not found");
}

}  // namespace
}  // namespace tollgate::dashboard
