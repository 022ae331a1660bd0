#include "tests/support/facts.h"

namespace tollgate::test {

Json MakeFacts(Cluster& cluster, int64_t credit_usd) {
  constexpr int64_t kUsd = 1'000'000'000;
  constexpr int kSmallCredits = 20;
  Json keys = Json::Object();
  const ApiKey good = cluster.NewCustomer(credit_usd * kUsd);
  keys.Set("good", good.secret);
  keys.Set("broke", cluster.NewCustomer(0).secret);
  const ApiKey capped = cluster.NewCustomer(kUsd);
  cluster.SetCap(capped.workspace_id, 1);
  keys.Set("capped", capped.secret);
  keys.Set("over_quota", cluster.NewCustomer(kUsd, {.monthly_quota_nano_usd = 1}).secret);
  const ApiKey disabled = cluster.NewCustomer(kUsd);
  cluster.SetKeyState(disabled, Cluster::KeyState::kDisabled);
  keys.Set("disabled", disabled.secret);
  const ApiKey revoked = cluster.NewCustomer(kUsd);
  cluster.SetKeyState(revoked, Cluster::KeyState::kRevoked);
  keys.Set("revoked", revoked.secret);
  keys.Set("narrow", cluster.NewCustomer(kUsd, {.allowed_models = {"sim/text"}}).secret);
  const Limits limited = {.requests_per_minute = 30, .concurrent_requests = 1};
  keys.Set("limited", cluster.NewCustomer(kUsd, {.limits = limited}).secret);
  keys.Set("one_a_minute",
           cluster.NewCustomer(kUsd, {.limits = {.requests_per_minute = 1}}).secret);
  // Every kind of limit, too high to refuse: for measuring the cost of limits.
  const Limits roomy = {.requests_per_minute = 100'000'000,
                        .tokens_per_minute = 100'000'000'000,
                        .concurrent_requests = 1'000'000};
  keys.Set("roomy", cluster.NewCustomer(credit_usd * kUsd, {.limits = roomy}).secret);
  keys.Set("few_tokens", cluster.NewCustomer(kUsd, {.limits = {.tokens_per_minute = 500}}).secret);
  Json small_credit = Json::Array();
  for (int i = 0; i < kSmallCredits; ++i) small_credit.Add(cluster.NewCustomer(kUsd / 1000).secret);
  Json workspaces = Json::Object();
  workspaces.Set("good", good.workspace_id);
  Json facts = Json::Object();
  facts.Set("port", cluster.port()).Set("dashboard_port", cluster.dashboard_port());
  facts.Set("model", "sim/model").Set("simulated", true);
  facts.Set("small_credit", small_credit);
  Json admin = Json::Object();
  for (const char* process : {"auth", "billing", "catalog", "dashboard"}) {
    admin.Set(process, cluster.admin_grpc_address(process));
  }
  facts.Set("admin", admin);
  return facts.Set("keys", keys).Set("workspaces", workspaces);
}

}  // namespace tollgate::test
