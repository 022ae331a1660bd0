#include "services/dashboard/http/admin_render.h"

#include "common/base/utc_text.h"
#include "common/json/writer.h"
#include "common/money/money.h"

namespace tollgate::dashboard {
namespace {

std::string Quote(const std::string& text) { return json::Quoted(text); }

std::string_view StateName(auth::v1::KeyState state) {
  switch (state) {
    case auth::v1::KEY_STATE_ACTIVE:
      return "active";
    case auth::v1::KEY_STATE_DISABLED:
      return "disabled";
    case auth::v1::KEY_STATE_REVOKED:
      return "revoked";
    default:
      return "unknown";
  }
}

// "vllm" for ENGINE_KIND_VLLM, "chat" for CAPABILITY_CHAT: drops the prefix, lower case.
std::string EnumText(const std::string& name, size_t prefix) {
  std::string text = name.substr(std::min(prefix, name.size()));
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string Time(int64_t wall_us) { return UtcText(wall_us, UtcPrecision::kSeconds); }

std::string LimitsJson(const auth::v1::Limits& limits) {
  return json::Writer()
      .Number("requests_per_minute", limits.requests_per_minute())
      .Number("tokens_per_minute", limits.tokens_per_minute())
      .Number("concurrent_requests", limits.concurrent_requests())
      .Done();
}

std::string WorkspaceJson(const auth::v1::Workspace& workspace) {
  return json::Writer()
      .Text("workspace_id", workspace.workspace_id())
      .Text("name", workspace.name())
      .Raw("limits", LimitsJson(workspace.limits()))
      .Text("created_at", Time(workspace.created_at_us()))
      .Done();
}

std::string KeyJson(const auth::v1::Key& key) {
  json::Writer out;
  out.Text("key_id", key.key_id())
      .Text("workspace_id", key.workspace_id())
      .Text("name", key.name())
      .Text("state", StateName(key.state()))
      .Text("last_four", key.last_four());
  if (key.expires_at_us() == 0) {
    out.Null("expires_at");
  } else {
    out.Text("expires_at", Time(key.expires_at_us()));
  }
  return out.Raw("allowed_models", json::WriteArray(key.allowed_models(), Quote))
      .Raw("limits", LimitsJson(key.key_limits()))
      .Text("created_at", Time(key.created_at_us()))
      .Done();
}

std::string BalanceJson(const billing::v1::Balance& balance) {
  json::Writer out;
  out.Text("workspace_id", balance.workspace_id())
      .Text("paid_usd", NanoToDecimalUsd(balance.paid_nano_usd()))
      .Text("granted_usd", NanoToDecimalUsd(balance.granted_nano_usd()))
      .Text("held_usd", NanoToDecimalUsd(balance.held_nano_usd()))
      .Text("available_usd", NanoToDecimalUsd(balance.available_nano_usd()));
  if (balance.has_cap_nano_usd()) {
    out.Text("cap_usd", NanoToDecimalUsd(balance.cap_nano_usd()));
  } else {
    out.Null("cap_usd");
  }
  return out.Text("month", UtcMonthText(balance.month()))
      .Text("month_spent_usd", NanoToDecimalUsd(balance.month_spent_nano_usd()))
      .Text("month_held_usd", NanoToDecimalUsd(balance.month_held_nano_usd()))
      .Number("open_holds", balance.open_holds())
      .Done();
}

template <typename Response>
std::string BalanceResponse(const Response& response) {
  return json::Writer().Raw("balance", BalanceJson(response.balance())).Done();
}

std::string ModelJson(const catalog::v1::Model& model) {
  const auto capability = [](int value) {
    return json::Quoted(
        EnumText(catalog::v1::Capability_Name(static_cast<catalog::v1::Capability>(value)), 11));
  };
  return json::Writer()
      .Text("id", model.id())
      .Text("name", model.display_name())
      .Number("context_window", model.context_window())
      .Number("max_output_tokens", model.max_output_tokens())
      .Text("input_usd_per_million", PicoPerTokenToUsdPerMillion(model.price().input_pico_usd()))
      .Text("output_usd_per_million", PicoPerTokenToUsdPerMillion(model.price().output_pico_usd()))
      .Raw("capabilities", json::WriteArray(model.capabilities(), capability))
      .Text("pool", model.pool())
      .Text("workspace_id", model.workspace_id())
      .Flag("serving", model.serving())
      .Done();
}

std::string PoolJson(const catalog::v1::Pool& pool) {
  const auto engine = [](const catalog::v1::Engine& engine) {
    return json::Writer()
        .Text("id", engine.id())
        .Text("kind", EnumText(catalog::v1::EngineKind_Name(engine.kind()), 12))
        .Text("base_url", engine.base_url())
        .Flag("has_api_key", !engine.api_key().empty())
        .Number("max_concurrency", engine.max_concurrency())
        .Done();
  };
  return json::Writer()
      .Text("name", pool.name())
      .Raw("engines", json::WriteArray(pool.engines(), engine))
      .Done();
}

}  // namespace

std::string Render(const auth::v1::ListWorkspacesResponse& response) {
  return json::Writer()
      .Raw("workspaces", json::WriteArray(response.workspaces(), WorkspaceJson))
      .Done();
}

std::string Render(const auth::v1::CreateWorkspaceResponse& response) {
  return json::Writer().Raw("workspace", WorkspaceJson(response.workspace())).Done();
}

std::string Render(const auth::v1::ListKeysResponse& response) {
  return json::Writer().Raw("keys", json::WriteArray(response.keys(), KeyJson)).Done();
}

std::string Render(const auth::v1::CreateKeyResponse& response) {
  return json::Writer()
      .Raw("key", KeyJson(response.key()))
      .Text("secret", response.secret())
      .Done();
}

std::string Render(const auth::v1::SetKeyStateResponse& response) {
  return json::Writer().Raw("key", KeyJson(response.key())).Done();
}

std::string Render(const auth::v1::ListAuditEventsResponse& response) {
  const auto event = [](const auth::v1::AuditEvent& event) {
    return json::Writer()
        .Number("sequence", event.sequence())
        .Text("at", Time(event.at_us()))
        .Text("actor", event.actor())
        .Text("action", event.action())
        .Text("workspace_id", event.workspace_id())
        .Text("subject", event.subject())
        .Text("detail", event.detail())
        .Done();
  };
  return json::Writer().Raw("events", json::WriteArray(response.events(), event)).Done();
}

std::string Render(const billing::v1::AddCreditResponse& response) {
  return BalanceResponse(response);
}

std::string Render(const billing::v1::SetCapResponse& response) {
  return BalanceResponse(response);
}

std::string Render(const billing::v1::GetBalanceResponse& response) {
  return BalanceResponse(response);
}

std::string Render(const billing::v1::VerifyLedgerResponse& response) {
  return json::Writer()
      .Flag("ok", response.ok())
      .Number("workspaces", response.workspaces())
      .Number("entries", response.entries())
      .Number("holds", response.holds())
      .Number("usage_records", response.usage_records())
      .Raw("violations", json::WriteArray(response.violations(), Quote))
      .Done();
}

std::string Render(const catalog::v1::Snapshot& snapshot) {
  return json::Writer()
      .Number("version", snapshot.version())
      .Text("digest", snapshot.digest())
      .Raw("models", json::WriteArray(snapshot.models(), ModelJson))
      .Raw("pools", json::WriteArray(snapshot.pools(), PoolJson))
      .Done();
}

std::string Render(const Error& error) {
  json::Writer inner;
  inner.Text("message", error.public_message())
      .Text("type", error.row().openai_type)
      .Text("code", error.row().code);
  if (error.param.empty()) {
    inner.Null("param");
  } else {
    inner.Text("param", error.param);
  }
  return json::Writer().Raw("error", inner.Done()).Done();
}

}  // namespace tollgate::dashboard
