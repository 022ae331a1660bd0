#include "services/auth/admin/key_values.h"

#include <algorithm>

#include "common/admin/values.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/base/utc_text.h"
#include "common/json/writer.h"
#include "common/money/money.h"
#include "services/auth/domain/rules.h"
#include "services/auth/storage/rows.h"

namespace tollgate::auth {

namespace pb = tollgate::admin::v1;

namespace {

pb::KeyState StateOf(const v1::Key& key, int64_t now_us) {
  switch (key.state()) {
    case v1::KEY_STATE_DISABLED:
      return pb::KEY_STATE_DISABLED;
    case v1::KEY_STATE_REVOKED:
      return pb::KEY_STATE_REVOKED;
    default:
      return key.expires_at_us() != 0 && key.expires_at_us() <= now_us ? pb::KEY_STATE_EXPIRED
                                                                       : pb::KEY_STATE_ACTIVE;
  }
}

std::string KeyName(const v1::Key& key, const std::string& id) {
  return "workspaces/" + key.workspace_id() + "/keys/" + id;
}

std::string Comma(const google::protobuf::RepeatedPtrField<std::string>& list, const char* none) {
  if (list.empty()) return none;
  std::string text;
  for (const std::string& entry : list) text += (text.empty() ? "" : ", ") + entry;
  return text;
}

std::string LimitsText(const v1::Limits& limits) {
  return "requests/min " + std::to_string(limits.requests_per_minute()) + ", tokens/min " +
         std::to_string(limits.tokens_per_minute()) + ", concurrent " +
         std::to_string(limits.concurrent_requests());
}

std::string LabelsText(const std::map<std::string, std::string>& labels) {
  std::string text;
  for (const auto& [name, value] : labels)
    text += (text.empty() ? "" : ", ") + name + "=" + json::Quoted(value);
  return text.empty() ? "none" : text;
}

// Each setting with its name in the audit log.
std::vector<std::pair<std::string, std::string>> Settings(const KeyRecord& record) {
  const v1::Key& key = record.key;
  // Quoted: a name must not look like another setting.
  return {{"name", json::Quoted(key.name())},
          {"expires", key.expires_at_us() == 0 ? "never" : UtcText(key.expires_at_us())},
          {"models", Comma(key.allowed_models(), "all")},
          {"addresses", Comma(key.allowed_addresses(), "all")},
          {"limits", LimitsText(key.key_limits())},
          {"quota", key.has_monthly_quota_nano_usd()
                        ? NanoToDecimalUsd(key.monthly_quota_nano_usd()) + " USD/month"
                        : "none"},
          {"labels", LabelsText(record.labels)}};
}

// Keeps audit events readable: a list of 200 models is in the key, not in every event.
constexpr size_t kMaxDetail = 2000;

std::string Cut(std::string text) {
  if (text.size() > kMaxDetail) text = ToValidUtf8(text, kMaxDetail) + " …";
  return text;
}

AdminResult<void> SetLimits(const pb::KeyLimits& from, const std::string& path,
                            const std::string& field, v1::Limits& into) {
  if (path == "limits" || path == "limits.requests_per_minute") {
    into.set_requests_per_minute(from.requests_per_minute());
  }
  if (path == "limits" || path == "limits.tokens_per_minute") {
    into.set_tokens_per_minute(from.tokens_per_minute());
  }
  if (path == "limits" || path == "limits.concurrent_requests") {
    into.set_concurrent_requests(from.concurrent_requests());
  }
  return Checked(CheckLimits({into.requests_per_minute(), into.tokens_per_minute(),
                              into.concurrent_requests()}),
                 field);
}

AdminResult<void> SetField(const pb::Key& from, const std::string& path, const std::string& field,
                           KeyRecord& into) {
  v1::Key& key = into.key;
  if (path == "display_name") {
    key.set_name(from.display_name());
    return Checked(CheckName(key.name()), field);
  }
  if (path == "expire_time") {
    if (!from.has_expire_time()) {
      key.set_expires_at_us(0);
      return {};
    }
    TRY(auto us, admin::ToMicros(from.expire_time(), field));
    // 0 would mean that the key never expires.
    key.set_expires_at_us(std::max<int64_t>(us, 1));
    return {};
  }
  if (path == "allowed_models") {
    *key.mutable_allowed_models() = from.allowed_models();
    return Checked(CheckAllowedModels({from.allowed_models().begin(), from.allowed_models().end()}),
                   field);
  }
  if (path == "allowed_addresses") {
    *key.mutable_allowed_addresses() = from.allowed_addresses();
    return Checked(
        CheckAllowedAddresses({from.allowed_addresses().begin(), from.allowed_addresses().end()}),
        field);
  }
  if (path == "monthly_quota_usd") {
    key.clear_monthly_quota_nano_usd();
    if (!from.has_monthly_quota_usd()) return {};
    TRY(auto nano, admin::ParseUsd(from.monthly_quota_usd(), field));
    key.set_monthly_quota_nano_usd(nano);
    return Checked(CheckQuota(nano), field);
  }
  if (path == "labels") {
    into.labels = {from.labels().begin(), from.labels().end()};
    return Checked(CheckLabels(into.labels), field);
  }
  return SetLimits(from.limits(), path, field, *key.mutable_key_limits());
}

}  // namespace

std::string EtagOf(const v1::Key& key) { return std::to_string(key.version()); }

pb::Key ToAdmin(const KeyRecord& record, int64_t now_us) {
  const v1::Key& key = record.key;
  pb::Key to;
  to.set_name(KeyName(key, key.key_id()));
  to.set_display_name(key.name());
  to.set_state(StateOf(key, now_us));
  to.set_state_reason(record.state_reason);
  if (key.expires_at_us() != 0) *to.mutable_expire_time() = admin::ToTimestamp(key.expires_at_us());
  *to.mutable_allowed_models() = key.allowed_models();
  *to.mutable_allowed_addresses() = key.allowed_addresses();
  to.mutable_limits()->set_requests_per_minute(key.key_limits().requests_per_minute());
  to.mutable_limits()->set_tokens_per_minute(key.key_limits().tokens_per_minute());
  to.mutable_limits()->set_concurrent_requests(key.key_limits().concurrent_requests());
  if (key.has_monthly_quota_nano_usd()) {
    to.set_monthly_quota_usd(admin::FormatUsd(key.monthly_quota_nano_usd()));
  }
  to.mutable_labels()->insert(record.labels.begin(), record.labels.end());
  to.set_last_four(key.last_four());
  to.set_created_by(record.created_by);
  if (!record.rotated_from.empty()) to.set_rotated_from(KeyName(key, record.rotated_from));
  *to.mutable_create_time() = admin::ToTimestamp(key.created_at_us());
  *to.mutable_update_time() =
      admin::ToTimestamp(std::max(key.changed_at_us(), key.created_at_us()));
  if (record.last_used_us > 0) {
    *to.mutable_last_used_time() = admin::ToTimestamp(record.last_used_us);
  }
  to.set_etag(EtagOf(key));
  return to;
}

const std::vector<std::string_view>& KeyFields() {
  static const std::vector<std::string_view> fields = {
      "display_name", "expire_time",       "allowed_models", "allowed_addresses",
      "limits",       "monthly_quota_usd", "labels"};
  return fields;
}

AdminResult<void> SetFields(const pb::Key& from, const std::vector<std::string>& paths,
                            const std::string& prefix, KeyRecord& into) {
  for (const std::string& path : paths) {
    TRY(SetField(from, path, prefix + path, into));
  }
  return {};
}

std::string DifferenceText(const KeyRecord& before, const KeyRecord& after) {
  const auto from = Settings(before), to = Settings(after);
  std::string text;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i].second == to[i].second) continue;
    text +=
        (text.empty() ? "" : "; ") + from[i].first + ": " + from[i].second + " → " + to[i].second;
  }
  return Cut(std::move(text));
}

std::string SettingsText(const KeyRecord& record) {
  std::string text;
  for (const auto& [name, value] : Settings(record)) {
    text += (text.empty() ? "" : "; ") + name + ": " + value;
  }
  return Cut(std::move(text));
}

}  // namespace tollgate::auth
