// AuthStore: limits by model, and plans.
#include "common/admin/requests.h"
#include "common/base/try.h"
#include "services/auth/storage/auth_store.h"
#include "services/auth/storage/rows.h"
#include "tollgate/auth/v1/auth.pb.h"

namespace tollgate::auth {

using sql::SqlResult;

namespace {

constexpr char kSelectLimits[] =
    "SELECT w.plan, w.requests_per_minute, w.tokens_per_minute, w.concurrent_requests, "
    "w.model_limits, p.limits, p.shadow FROM workspace w LEFT JOIN plan p ON p.plan_id = w.plan "
    "WHERE w.workspace_id = $1";
constexpr char kSelectKeyLimits[] =
    "SELECT model_limits FROM virtual_key WHERE key_id = $1 AND workspace_id = $2";
constexpr char kSelectPlans[] = "SELECT plan_id, limits, shadow FROM plan";

Fail<Error> NoSuch(const std::string& what, const std::string& name) {
  return {Error{.id = ErrorId::kNotFound,
                .message = "There is no " + what + " \"" + name + "\".",
                .param = "name"}};
}

AuthStore::WorkspaceLimits ReadLimits(const sql::Row& row) {
  return {.plan = row.Text(0),
          .limits = {row.Int(1), row.Int(2), row.Int(3)},
          .model_limits = ParseLimits(row.Bytes(4)).workspace_models,
          .of_plan = ParseLimits(row.Bytes(5)),
          .plan_shadow = row.Int(6) != 0};
}

AuthStore::Plan ReadPlan(const sql::Row& row) {
  return {.id = row.Text(0), .limits = ParseLimits(row.Bytes(1)), .shadow = row.Int(2) != 0};
}

}  // namespace

Result<AuthStore::WorkspaceLimits> AuthStore::GetLimits(const std::string& workspace_id) {
  std::optional<WorkspaceLimits> limits;
  const auto done = Read([&](sql::Connection& sql) {
    limits.reset();
    return sql.Query(kSelectLimits, {workspace_id},
                     [&](const sql::Row& row) { limits = ReadLimits(row); });
  });
  if (!done) return Fail{done.error()};
  if (!limits) return NoSuch("workspace", workspace_id);
  return std::move(*limits);
}

Result<ModelLimits> AuthStore::GetKeyModelLimits(const std::string& workspace_id,
                                                 const std::string& key_id) {
  std::optional<ModelLimits> limits;
  const auto done = Read([&](sql::Connection& sql) {
    limits.reset();
    return sql.Query(kSelectKeyLimits, {key_id, workspace_id},
                     [&](const sql::Row& row) { limits = ParseLimits(row.Bytes(0)).key_models; });
  });
  if (!done) return Fail{done.error()};
  if (!limits) return NoSuch("key", key_id);
  return std::move(*limits);
}

Result<v1::Key> AuthStore::KeyWithLimits(const std::string& workspace_id,
                                         const std::string& key_id) {
  std::optional<v1::Key> key;
  const auto done = Read([&](sql::Connection& sql) {
    key.reset();
    return sql.Query(std::string(kSelectKeys) + " WHERE k.key_id = $1 AND k.workspace_id = $2",
                     {key_id, workspace_id},
                     [&](const sql::Row& row) { key = ReadKeyWithPlan(row); });
  });
  if (!done) return Fail{done.error()};
  if (!key) return NoSuch("key", key_id);
  return std::move(*key);
}

Result<std::vector<v1::Key>> AuthStore::KeysWithLimits(const std::string& workspace_id,
                                                       const KeyPlace& after, int limit) {
  std::vector<v1::Key> keys;
  const auto done = Read([&](sql::Connection& sql) {
    keys.clear();
    return sql.Query(std::string(kSelectKeys) +
                         " WHERE k.workspace_id = $1 AND k.state = $2 AND "
                         "(k.created_at_us, k.key_id) < ($3, $4) "
                         "ORDER BY k.created_at_us DESC, k.key_id DESC LIMIT $5",
                     {workspace_id, int64_t{v1::KEY_STATE_ACTIVE}, after.created_at_us,
                      after.key_id, int64_t{limit}},
                     [&](const sql::Row& row) { keys.push_back(ReadKeyWithPlan(row)); });
  });
  if (!done) return Fail{done.error()};
  return keys;
}

Result<AuthStore::Plan> AuthStore::GetPlan(const std::string& plan_id) {
  std::optional<Plan> plan;
  const auto done = Read([&](sql::Connection& sql) {
    plan.reset();
    return sql.Query(std::string(kSelectPlans) + " WHERE plan_id = $1", {plan_id},
                     [&](const sql::Row& row) { plan = ReadPlan(row); });
  });
  if (!done) return Fail{done.error()};
  if (!plan) return NoSuch("plan", plan_id);
  return std::move(*plan);
}

Result<std::vector<AuthStore::Plan>> AuthStore::ListPlans(int limit, const std::string& after) {
  std::vector<Plan> plans;
  const auto done = Read([&](sql::Connection& sql) {
    plans.clear();
    return sql.Query(std::string(kSelectPlans) + " WHERE plan_id > $1 ORDER BY plan_id LIMIT $2",
                     {after, limit}, [&](const sql::Row& row) { plans.push_back(ReadPlan(row)); });
  });
  if (!done) return Fail{done.error()};
  return plans;
}

SqlResult<void> AuthStore::Touch(Change& change, const std::string& condition,
                                 const std::string& parameter) {
  // Locks the rows in the same order as reports of use (StoreUse), so that they do not deadlock.
  // The update alone would lock them in any order.
  const auto keys = [&condition](const std::string& number) {
    std::string text = "FROM virtual_key WHERE " + condition;
    return text.replace(text.find('?'), 1, number);
  };
  TRY(change.connection.Query("SELECT key_id " + keys("$1") + " ORDER BY key_id FOR UPDATE",
                              {parameter}, [](const sql::Row&) {}));
  TRY(auto touched,
      change.connection.Execute("UPDATE virtual_key SET version = $1 + n.place, "
                                "updated_at_us = $2 FROM (SELECT key_id AS "
                                "id, ROW_NUMBER() OVER "
                                "(ORDER BY key_id) AS place " +
                                    keys("$3") + ") n WHERE n.id = virtual_key.key_id",
                                {change.version, change.now_us, parameter}));
  // At least one, because the audit event is stored with the version.
  change.version += std::max<int64_t>(touched, 1);
  return {};
}

admin::AdminResult<void> AuthStore::ApplyLimits(
    const LimitChange& change, std::string_view kind,
    const std::function<SqlResult<void>(Change&)>& body) {
  TRY(auto id, admin::RequestIdOrNew(change.request_id));
  if (auto checked = CheckRemark(change.actor, "actor"); !checked) {
    return Fail{admin::FromError(checked.error())};
  }
  const auto applied = ChangeOnce({.scope = change.actor,
                                   .request_id = std::move(id),
                                   .content = std::string(kind) + '\n' + change.content},
                                  [&](Change& open) -> SqlResult<std::string> {
                                    TRY(body(open));
                                    return std::string();
                                  });
  if (!applied) return Fail{applied.error()};
  return {};
}

admin::AdminResult<void> AuthStore::UpdateLimits(LimitChange change,
                                                 const std::string& workspace_id,
                                                 const Edit<WorkspaceLimits>& edit) {
  return ApplyLimits(change, "UpdateLimits", [&](Change& open) -> SqlResult<void> {
    const auto refuse = [&](Error error) -> SqlResult<void> {
      return Fail{open.Refuse(std::move(error)).error()};
    };
    std::optional<WorkspaceLimits> limits;
    TRY(open.connection.Query(kSelectLimits, {workspace_id},
                              [&](const sql::Row& row) { limits = ReadLimits(row); }));
    if (!limits) return refuse(NoSuch("workspace", workspace_id).error);
    if (auto edited = edit(*limits); !edited) return refuse(edited.error());
    for (const auto& checked : {CheckLimits(limits->limits),
                                CheckModelLimits(limits->model_limits, "limits.model_limits")}) {
      if (!checked) return refuse(checked.error());
    }
    if (!limits->plan.empty()) {
      bool exists = false;
      TRY(open.connection.Query(std::string(kSelectPlans) + " WHERE plan_id = $1", {limits->plan},
                                [&](const sql::Row&) { exists = true; }));
      if (!exists) {
        return refuse(
            BadRequest("There is no plan \"" + limits->plan + "\".", "limits.plan").error);
      }
    }
    LimitSet stored;
    stored.workspace_models = limits->model_limits;
    const std::string by_model = FormatLimits(stored);
    stored.workspace = limits->limits;
    TRY(WithoutValue(open.connection.Execute(
        "UPDATE workspace SET plan = $1, requests_per_minute = $2, tokens_per_minute = $3, "
        "concurrent_requests = $4, model_limits = $5 WHERE workspace_id = $6",
        {limits->plan, limits->limits.requests_per_minute, limits->limits.tokens_per_minute,
         limits->limits.concurrent_requests, by_model, workspace_id})));
    TRY(Touch(open, "workspace_id = ?", workspace_id));
    return open.Audit({.actor = change.actor,
                       .action = "workspace.limits",
                       .workspace_id = workspace_id,
                       .subject = workspace_id,
                       .detail = "plan " + limits->plan + "; " + FormatLimits(stored),
                       .address = change.address,
                       .request_id = change.request_id});
  });
}

admin::AdminResult<void> AuthStore::UpdateKeyModelLimits(LimitChange change,
                                                         const std::string& workspace_id,
                                                         const std::string& key_id,
                                                         const Edit<ModelLimits>& edit) {
  return ApplyLimits(change, "UpdateKeyModelLimits", [&](Change& open) -> SqlResult<void> {
    const auto refuse = [&](Error error) -> SqlResult<void> {
      return Fail{open.Refuse(std::move(error)).error()};
    };
    std::optional<ModelLimits> limits;
    TRY(open.connection.Query(kSelectKeyLimits, {key_id, workspace_id}, [&](const sql::Row& row) {
      limits = ParseLimits(row.Bytes(0)).key_models;
    }));
    if (!limits) return refuse(NoSuch("key", key_id).error);
    if (auto edited = edit(*limits); !edited) return refuse(edited.error());
    if (auto checked = CheckModelLimits(*limits, "key_model_limits.model_limits"); !checked) {
      return refuse(checked.error());
    }
    LimitSet stored;
    stored.key_models = *limits;
    TRY(WithoutValue(
        open.connection.Execute("UPDATE virtual_key SET model_limits = $1 WHERE key_id = $2",
                                {FormatLimits(stored), key_id})));
    TRY(Touch(open, "key_id = ?", key_id));
    return open.Audit({.actor = change.actor,
                       .action = "key.model_limits",
                       .workspace_id = workspace_id,
                       .subject = key_id,
                       .detail = FormatLimits(stored),
                       .address = change.address,
                       .request_id = change.request_id});
  });
}

admin::AdminResult<void> AuthStore::UpdatePlan(LimitChange change, const std::string& plan_id,
                                               const Edit<Plan>& edit) {
  return ApplyLimits(change, "UpdatePlan", [&](Change& open) -> SqlResult<void> {
    const auto refuse = [&](Error error) -> SqlResult<void> {
      return Fail{open.Refuse(std::move(error)).error()};
    };
    if (auto checked = CheckPlanId(plan_id); !checked) return refuse(checked.error());
    Plan plan{.id = plan_id};
    TRY(open.connection.Query(std::string(kSelectPlans) + " WHERE plan_id = $1", {plan_id},
                              [&](const sql::Row& row) { plan = ReadPlan(row); }));
    if (auto edited = edit(plan); !edited) return refuse(edited.error());
    for (const auto& checked :
         {CheckLimits(plan.limits.key), CheckLimits(plan.limits.workspace),
          CheckModelLimits(plan.limits.key_models, "plan.key_model_limits"),
          CheckModelLimits(plan.limits.workspace_models, "plan.workspace_model_limits")}) {
      if (!checked) return refuse(checked.error());
    }
    TRY(WithoutValue(open.connection.Execute(
        "INSERT INTO plan (plan_id, limits, shadow) VALUES ($1, $2, $3) ON CONFLICT (plan_id) DO "
        "UPDATE SET limits = excluded.limits, shadow = excluded.shadow",
        {plan_id, FormatLimits(plan.limits), int64_t{plan.shadow}})));
    TRY(Touch(open, "workspace_id IN (SELECT workspace_id FROM workspace WHERE plan = ?)",
              plan_id));
    return open.Audit(
        {.actor = change.actor,
         .action = "plan.update",
         .subject = plan_id,
         .detail = std::string(plan.shadow ? "shadow; " : "") + FormatLimits(plan.limits),
         .address = change.address,
         .request_id = change.request_id});
  });
}

}  // namespace tollgate::auth
