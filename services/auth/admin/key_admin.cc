#include "services/auth/admin/key_admin.h"

#include <optional>

#include "common/admin/values.h"
#include "common/base/crypto.h"
#include "common/base/id.h"
#include "common/base/try.h"
#include "common/keys/key_format.h"
#include "services/auth/admin/key_lineage.h"
#include "services/auth/admin/key_policy.h"
#include "services/auth/admin/key_values.h"
#include "services/auth/domain/rules.h"

namespace tollgate::auth {

namespace pb = tollgate::admin::v1;

using sql::SqlResult;
using Change = AuthStore::Change;

namespace {

constexpr char kParent[] = "workspaces/*";
constexpr char kKeyName[] = "workspaces/*/keys/*";
constexpr int kMaxImport = 500;
constexpr int64_t kMaxOverlapSeconds = int64_t{30} * 24 * 3600;

struct KeyPath {
  std::string workspace, key_id;
};

AdminResult<KeyPath> PathOf(const std::string& name, const std::string& field) {
  TRY(auto parts, admin::NameParts(kKeyName, name, field));
  if (!IsKeyId(parts[1])) {
    return admin::InvalidField(field, "the last part of a key's name is 12 letters and digits");
  }
  return KeyPath{parts[0], parts[1]};
}

admin::Failure NoKey(const KeyPath& path) {
  return admin::NotFound("there is no key " + path.key_id + " in the workspace " + path.workspace)
      .error;
}

// Reads the key for a change, or refuses the change.
SqlResult<KeyRecord> FindKey(Change& change, const Caller& caller, const KeyPath& path) {
  TRY(auto found, FindKeyIn(change.connection, path.workspace, path.key_id));
  if (!found) return Fail{change.Refuse(NoKey(path)).error()};
  if (caller.own_only && found->created_by != OwnerOf(caller)) {
    return Fail{change
                    .Refuse(admin::PermissionDenied("PERMISSION_DENIED",
                                                    "your role may change only keys that you have "
                                                    "made; this one is another's")
                                .error)
                    .error()};
  }
  return *std::move(found);
}

admin::Failure IsRevoked() {
  return admin::Precondition("KEY_REVOKED", "the key is revoked, which is final: make another one")
      .error;
}

// A new key with these settings, without a secret.
KeyRecord NewKey(const std::string& workspace, const std::string& key_id, const Caller& caller) {
  KeyRecord record;
  record.key.set_key_id(key_id);
  record.key.set_workspace_id(workspace);
  record.key.set_state(v1::KEY_STATE_ACTIVE);
  record.created_by = OwnerOf(caller);
  return record;
}

std::vector<std::string> AllFields() { return {KeyFields().begin(), KeyFields().end()}; }

AdminResult<void> CheckText(const std::string& text, const std::string& field) {
  return Checked(CheckRemark(text, field), field);
}

// Writes the new key and its audit event.
SqlResult<void> AddKey(Change& change, const Caller& caller, KeyRecord& record,
                       const AuthStore::Stored& stored, const std::string& action) {
  if (auto ahead = CheckExpiry(record.key.expires_at_us(), change.now_us); !ahead) {
    return Fail{change
                    .Refuse(admin::InvalidField("key.expire_time",
                                                std::string(ahead.error().public_message()))
                                .error)
                    .error()};
  }
  record.key.set_version(++change.version);
  record.key.set_created_at_us(change.now_us);
  record.key.set_changed_at_us(change.now_us);
  TRY(InsertKey(change.connection, record, stored));
  return change.Audit(EventOf(caller, action, record.key.workspace_id(), record.key.key_id(),
                              SettingsText(record)));
}

// Writes a changed key with its next version.
SqlResult<void> SaveKey(Change& change, KeyRecord& record) {
  record.key.set_version(++change.version);
  record.key.set_changed_at_us(change.now_us);
  return UpdateKey(change.connection, record);
}

}  // namespace

AdminResult<pb::CreateKeyResponse> KeyAdmin::Create(const Caller& caller,
                                                    const pb::CreateKeyRequest& request) {
  TRY(auto parts, admin::NameParts(kParent, request.parent(), "parent"));
  TRY(admin::RequiredRequestId(request.request_id()));
  const MadeKey made = MakeKey(store_.options().brand);
  KeyRecord record = NewKey(parts.front(), made.key_id, caller);
  record.key.set_last_four(made.last_four);
  TRY(SetFields(request.key(), AllFields(), "key.", record));
  TRY(auto once, OnceOf(caller, "CreateKey", request));
  const auto answer = store_.ChangeOnce(once, [&](Change& change) -> SqlResult<std::string> {
    TRY(RequireOpen(change, parts.front()));
    TRY(AddKey(change, caller, record, store_.StoredOf(KeyDigest(made.text)), "key.create"));
    return ToAdmin(record, change.now_us).SerializeAsString();
  });
  TRY(auto key, Parsed<pb::Key>(answer));
  pb::CreateKeyResponse response;
  *response.mutable_key() = std::move(key);
  response.set_secret_shown(answer->repeated);
  if (!answer->repeated) response.set_secret(made.text);
  return response;
}

AdminResult<pb::Key> KeyAdmin::Get(const pb::GetKeyRequest& request) {
  TRY(auto path, PathOf(request.name(), "name"));
  const int64_t now_us = store_.clock().WallUs();
  std::optional<pb::Key> key;
  const auto done = store_.Read([&](sql::Connection& sql) -> SqlResult<void> {
    key.reset();
    TRY(auto found, FindKeyIn(sql, path.workspace, path.key_id));
    if (!found) return {};
    key = ToAdmin(*found, now_us);
    std::vector<pb::Key*> keys = {&*key};
    return AddRequests(sql, now_us, keys);
  });
  if (!done) return Fail{admin::FromError(done.error())};
  if (!key) return Fail{NoKey(path)};
  return *std::move(key);
}

AdminResult<pb::Key> KeyAdmin::Update(const Caller& caller, const pb::UpdateKeyRequest& request) {
  TRY(auto path, PathOf(request.key().name(), "key.name"));
  pb::Key without_etag = request.key();
  without_etag.clear_etag();
  without_etag.clear_name();
  TRY(auto fields, admin::MaskedFields(request.update_mask(), without_etag, KeyFields()));
  KeyRecord checked;
  TRY(SetFields(request.key(), fields, "key.", checked));
  TRY(auto once, OnceOf(caller, "UpdateKey", request));
  return Parsed<pb::Key>(store_.ChangeOnce(once, [&](Change& change) -> SqlResult<std::string> {
    TRY(auto found, FindKey(change, caller, path));
    if (auto current = CheckEtag(request.key().etag(), EtagOf(found.key)); !current) {
      return change.Refuse(current.error());
    }
    if (found.key.state() == v1::KEY_STATE_REVOKED) return change.Refuse(IsRevoked());
    KeyRecord record = found;
    (void)SetFields(request.key(), fields, "key.", record);  // checked above
    if (record.key.expires_at_us() != found.key.expires_at_us()) {
      if (auto ahead = CheckExpiry(record.key.expires_at_us(), change.now_us); !ahead) {
        return change.Refuse(
            admin::InvalidField("key.expire_time", std::string(ahead.error().public_message()))
                .error);
      }
    }
    const std::string difference = DifferenceText(found, record);
    if (difference.empty()) return ToAdmin(record, change.now_us).SerializeAsString();
    TRY(SaveKey(change, record));
    TRY(change.Audit(EventOf(caller, "key.update", path.workspace, path.key_id, difference)));
    return ToAdmin(record, change.now_us).SerializeAsString();
  }));
}

template <typename Request>
AdminResult<pb::Key> KeyAdmin::SetState(const Caller& caller, std::string_view method,
                                        const Request& request, v1::KeyState state) {
  TRY(auto path, PathOf(request.name(), "name"));
  TRY(CheckText(request.reason(), "reason"));
  TRY(auto once, OnceOf(caller, method, request));
  return Parsed<pb::Key>(store_.ChangeOnce(once, [&](Change& change) -> SqlResult<std::string> {
    TRY(auto found, FindKey(change, caller, path));
    KeyRecord& record = found;
    if (record.key.state() == v1::KEY_STATE_REVOKED && state != v1::KEY_STATE_REVOKED) {
      return change.Refuse(IsRevoked());
    }
    if (record.key.state() == state) {
      return ToAdmin(record, change.now_us).SerializeAsString();
    }
    record.key.set_state(state);
    record.state_reason = request.reason();
    TRY(SaveKey(change, record));
    TRY(change.Audit(EventOf(caller, std::string(KeyAction(state)), path.workspace, path.key_id,
                             request.reason())));
    return ToAdmin(record, change.now_us).SerializeAsString();
  }));
}

AdminResult<pb::Key> KeyAdmin::Disable(const Caller& caller, const pb::DisableKeyRequest& request) {
  return SetState(caller, "DisableKey", request, v1::KEY_STATE_DISABLED);
}
AdminResult<pb::Key> KeyAdmin::Enable(const Caller& caller, const pb::EnableKeyRequest& request) {
  return SetState(caller, "EnableKey", request, v1::KEY_STATE_ACTIVE);
}
AdminResult<pb::Key> KeyAdmin::Revoke(const Caller& caller, const pb::RevokeKeyRequest& request) {
  return SetState(caller, "RevokeKey", request, v1::KEY_STATE_REVOKED);
}

AdminResult<pb::RotateKeyResponse> KeyAdmin::Rotate(const Caller& caller,
                                                    const pb::RotateKeyRequest& request) {
  TRY(auto path, PathOf(request.name(), "name"));
  TRY(admin::RequiredRequestId(request.request_id()));
  const auto& overlap = request.overlap();
  if (overlap.seconds() < 0 || overlap.nanos() < 0 || overlap.seconds() > kMaxOverlapSeconds) {
    return admin::InvalidField("overlap", "the overlap is 0 to 30 days");
  }
  const int64_t overlap_us = overlap.seconds() * 1'000'000 + overlap.nanos() / 1000;
  const MadeKey made = MakeKey(store_.options().brand);
  TRY(auto once, OnceOf(caller, "RotateKey", request));
  const auto answer = store_.ChangeOnce(once, [&](Change& change) -> SqlResult<std::string> {
    TRY(RequireOpen(change, path.workspace));
    TRY(auto found, FindKey(change, caller, path));
    KeyRecord& old = found;
    if (old.key.state() == v1::KEY_STATE_REVOKED) return change.Refuse(IsRevoked());
    const int64_t expires_us = old.key.expires_at_us();
    if (expires_us != 0 && expires_us <= change.now_us) {
      return change.Refuse(
          admin::Precondition("KEY_EXPIRED", "the key has expired: make another one").error);
    }
    TRY(JoinLineage(change, old, made.key_id));
    KeyRecord made_record = old;
    made_record.key.set_key_id(made.key_id);
    made_record.key.set_last_four(made.last_four);
    made_record.created_by = OwnerOf(caller);
    made_record.rotated_from = old.key.key_id();
    made_record.last_used_us = 0;
    const int64_t end_us = change.now_us + overlap_us;
    if (expires_us == 0 || expires_us > end_us) old.key.set_expires_at_us(end_us);
    TRY(SaveKey(change, old));
    TRY(change.Audit(EventOf(caller, "key.rotate", path.workspace, path.key_id,
                             "replaced by " + made.key_id + "; overlap " +
                                 std::to_string(overlap_us / 1'000'000) + " s")));
    TRY(AddKey(change, caller, made_record, store_.StoredOf(KeyDigest(made.text)), "key.create"));
    TRY(CopyModelLimits(change.connection, path.key_id, made.key_id));
    pb::RotateKeyResponse response;
    *response.mutable_key() = ToAdmin(made_record, change.now_us);
    *response.mutable_rotated() = ToAdmin(old, change.now_us);
    return response.SerializeAsString();
  });
  auto response = Parsed<pb::RotateKeyResponse>(answer);
  if (!response) return response;
  response->set_secret_shown(answer->repeated);
  if (!answer->repeated) response->set_secret(made.text);
  return response;
}

AdminResult<pb::ImportKeysResponse> KeyAdmin::Import(const Caller& caller,
                                                     const pb::ImportKeysRequest& request) {
  TRY(auto parts, admin::NameParts(kParent, request.parent(), "parent"));
  TRY(admin::RequiredRequestId(request.request_id()));
  if (request.keys_size() < 1 || request.keys_size() > kMaxImport) {
    return admin::InvalidField("keys", "1 to 500 keys are imported at once");
  }
  std::vector<std::pair<KeyRecord, AuthStore::Stored>> imports;
  for (int i = 0; i < request.keys_size(); ++i) {
    const std::string prefix = "keys[" + std::to_string(i) + "].";
    const pb::ImportedKey& given = request.keys(i);
    if (given.sha256().size() != 32) {
      return admin::InvalidField(prefix + "sha256",
                                 "sha256 is the SHA-256 of the whole key: 32 bytes");
    }
    KeyRecord record = NewKey(parts.front(), MakeKey(store_.options().brand).key_id, caller);
    TRY(SetFields(given.key(), AllFields(), prefix + "key.", record));
    imports.emplace_back(std::move(record), store_.StoredOf(given.sha256()));
  }
  TRY(auto once, OnceOf(caller, "ImportKeys", request));
  return Parsed<pb::ImportKeysResponse>(
      store_.ChangeOnce(once, [&](Change& change) -> SqlResult<std::string> {
        TRY(RequireOpen(change, parts.front()));
        pb::ImportKeysResponse response;
        for (int i = 0; i < request.keys_size(); ++i) {
          auto& [record, stored] = imports[static_cast<size_t>(i)];
          TRY(auto known, KeyWithDigest(change.connection, store_, request.keys(i).sha256()));
          if (known) {
            return change.Refuse(admin::Failure{
                .code = grpc::StatusCode::ALREADY_EXISTS,
                .reason = "KEY_EXISTS",
                .message = "keys[" + std::to_string(i) +
                           "] already exists, or is twice in the request; nothing was imported"});
          }
          TRY(AddKey(change, caller, record, stored, "key.import"));
          *response.add_keys() = ToAdmin(record, change.now_us);
        }
        return response.SerializeAsString();
      }));
}

AdminResult<pb::ReportLeakedKeyResponse> KeyAdmin::ReportLeak(
    const Caller& caller, const pb::ReportLeakedKeyRequest& request) {
  if (request.secret().empty() || request.secret().size() > kMaxLegacyKeyLength) {
    return admin::InvalidField("secret", "the whole key is required");
  }
  TRY(CheckText(request.source(), "source"));
  std::string reason = "reported as leaked by " + caller.actor;
  if (!request.source().empty()) reason += ": " + request.source();
  TRY(DisableLeaked(store_, KeyDigest(request.secret()), caller.address, reason));
  return pb::ReportLeakedKeyResponse();
}

}  // namespace tollgate::auth
