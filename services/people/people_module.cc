#include "services/people/people_module.h"

#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_builder.h>

#include <fstream>
#include <optional>
#include <vector>

#include "common/base/crypto.h"
#include "common/base/seal.h"
#include "common/base/time_units.h"
#include "common/base/try.h"
#include "common/observability/log.h"
#include "services/people/oidc/oidc.h"
#include "services/people/rpc/callers.h"
#include "services/people/rpc/people_rpc.h"

namespace tollgate {
namespace {

using people::Oidc;
using people::OidcOptions;
using people::People;
using people::PeopleOptions;

constexpr int kConnections = 4;

// The workspace that `./dev run` creates.
constexpr char kDemonstrationWorkspace[] = "demo";

// The file's text without trailing white space; nullopt if it cannot be read.
std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
    text.pop_back();
  }
  return text;
}

Result<std::string> SealKey(const config::v1::AuthSettings& settings) {
  const std::string& path = settings.people().seal_key_file();
  if (path.empty()) return HmacSha256(settings.pepper(), "seal of people");
  const auto text = ReadFile(path);
  const auto key = text ? HexDecode(*text) : std::nullopt;
  if (!key || key->size() != kSealKeyBytes) {
    return Internal("auth.people.seal_key_file must have 64 hexadecimal digits: " + path);
  }
  return *key;
}

Result<std::unique_ptr<Oidc>> MakeOidc(const config::v1::OidcSettings& settings,
                                       const std::string& seal_key, const Clock& clock) {
  if (settings.issuer().empty()) return std::unique_ptr<Oidc>();
  OidcOptions options{.issuer = settings.issuer(),
                      .client_id = settings.client_id(),
                      .client_secret = "",
                      .seal_key = seal_key};
  if (options.client_id.empty()) return Internal("auth.people.oidc.client_id is required");
  if (!settings.client_secret_file().empty()) {
    const auto secret = ReadFile(settings.client_secret_file());
    if (!secret || secret->empty()) {
      return Internal("auth.people.oidc.client_secret_file cannot be read: " +
                      settings.client_secret_file());
    }
    options.client_secret = *secret;
  }
  return std::make_unique<Oidc>(std::move(options), clock);
}

Result<void> SetMail(const config::v1::PeopleSettings& settings, PeopleOptions& options) {
  if (settings.smtp_url().empty()) return {};
  const std::string& url = settings.public_url();
  if (!url.starts_with("https://") && !url.starts_with("http://")) {
    return Internal(
        "auth.people.smtp_url requires auth.people.public_url, the dashboard's address for links "
        "in mails");
  }
  options.public_url = url;
  options.mail = {.url = settings.smtp_url(),
                  .user = settings.smtp_user(),
                  .password = "",
                  .from = settings.mail_from(),
                  .authority_file = settings.smtp_authority_file()};
  return mail::CheckMailServer("auth.people", settings.smtp_password_file(), options.mail);
}

class PeopleModule : public Module {
 public:
  PeopleModule(HostContext& context, const config::v1::AuthSettings& settings)
      : settings_(settings), clock_(context.clock) {
    services_.push_back(people::MakeSessionRpc(slot_));
    services_.push_back(people::MakeUserRpc(slot_));
    services_.push_back(people::MakeMemberRpc(slot_));
    services_.push_back(people::MakeInvitationRpc(slot_));
    services_.push_back(people::MakeSupportRpc(slot_));
  }
  ~PeopleModule() override { Stop(); }

  std::string_view name() const override { return "people"; }
  void RegisterAdmin(grpc::ServerBuilder& builder) override {
    for (const auto& service : services_) builder.RegisterService(service.get());
  }
  std::span<const rpc::MethodCallers> AdminCallers() const override {
    return people::kAdminCallers;
  }

  Result<void> Start() override {
    TRY(auto options, Options());
    TRY(auto oidc, MakeOidc(settings_.people().oidc(), options.seal_key, clock_));
    auto database =
        sql::Database::Open({.url = settings_.sql().url(), .connections = kConnections});
    if (!database) return Fail{ToError(database.error())};
    database_ = std::move(*database);
    people_ = std::make_unique<People>(*database_, clock_, options, std::move(oidc));
    if (settings_.people().demonstration()) {
      TRY(MakeDemonstration());
    }
    slot_ = people_.get();
    return {};
  }
  // While the database is unreachable, auth is not ready.
  bool Ready() const override { return slot_.load() != nullptr; }
  void Stop() override {
    slot_ = nullptr;
    if (people_) people_->Stop();
  }

 private:
  Result<PeopleOptions> Options() const {
    const config::v1::PeopleSettings& settings = settings_.people();
    TRY(auto seal_key, SealKey(settings_));
    PeopleOptions options{.seal_key = std::move(seal_key),
                          .oidc_domains = {settings.oidc().allowed_domains().begin(),
                                           settings.oidc().allowed_domains().end()},
                          .self_service = settings.self_service_workspaces()};
    TRY(SetMail(settings, options));
    if (settings.session_idle_minutes() > 0) {
      options.times.idle_us = settings.session_idle_minutes() * kMinuteUs;
    }
    if (settings.session_absolute_hours() > 0) {
      options.times.absolute_us = settings.session_absolute_hours() * 60 * kMinuteUs;
    }
    return options;
  }
  Result<void> MakeDemonstration() {
    auto link = people_->store().DemonstrationLink(kDemonstrationWorkspace);
    if (!link) return Internal("the demonstration owner was not made: " + link.error().message);
    if (link->token.empty()) return {};
    log::Info(
        "demonstration owner made; the link signs in once",
        {{"link", settings_.people().public_url() + "/session/v1/link?token=" + link->token}});
    return {};
  }

  const config::v1::AuthSettings settings_;
  const Clock& clock_;
  people::PeopleSlot slot_{nullptr};
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<sql::Database> database_;  // null before Start
  std::unique_ptr<People> people_;           // null before Start
};

}  // namespace

std::unique_ptr<Module> MakePeopleModule(HostContext& context,
                                         const config::v1::AuthSettings& settings) {
  return std::make_unique<PeopleModule>(context, settings);
}

}  // namespace tollgate
