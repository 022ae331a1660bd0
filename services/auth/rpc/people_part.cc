#include "services/auth/rpc/people_part.h"

#include <grpcpp/impl/service_type.h>

#include <fstream>
#include <optional>

#include "common/base/crypto.h"
#include "common/base/seal.h"
#include "common/base/time_units.h"
#include "common/base/try.h"
#include "common/observability/log.h"
#include "services/auth/oidc/oidc.h"
#include "services/auth/rpc/people_rpc.h"

namespace tollgate::auth {
namespace {

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

}  // namespace

PeoplePart::PeoplePart(const config::v1::AuthSettings& settings, const Clock& clock)
    : settings_(settings), clock_(clock) {
  services_.push_back(MakeSessionRpc(slot_));
  services_.push_back(MakeUserRpc(slot_));
  services_.push_back(MakeMemberRpc(slot_));
  services_.push_back(MakeInvitationRpc(slot_));
  services_.push_back(MakeSupportRpc(slot_));
}

void PeoplePart::Register(grpc::ServerBuilder& builder) {
  for (const auto& service : services_) builder.RegisterService(service.get());
}

Result<void> PeoplePart::Start(sql::Database& database) {
  const config::v1::PeopleSettings& people = settings_.people();
  TRY(auto seal_key, SealKey(settings_));
  PeopleOptions options{.seal_key = seal_key,
                        .oidc_domains = {people.oidc().allowed_domains().begin(),
                                         people.oidc().allowed_domains().end()}};
  options.self_service = people.self_service_workspaces();
  TRY(SetMail(people, options));
  if (people.session_idle_minutes() > 0) {
    options.times.idle_us = people.session_idle_minutes() * kMinuteUs;
  }
  if (people.session_absolute_hours() > 0) {
    options.times.absolute_us = people.session_absolute_hours() * 60 * kMinuteUs;
  }
  TRY(auto oidc, MakeOidc(people.oidc(), seal_key, clock_));
  people_ = std::make_unique<People>(database, clock_, options, std::move(oidc));
  if (people.demonstration()) {
    auto link = people_->store().DemonstrationLink(kDemonstrationWorkspace);
    if (!link) return Internal("the demonstration owner was not made: " + link.error().message);
    if (!link->token.empty()) {
      log::Info("demonstration owner made; the link signs in once",
                {{"link", people.public_url() + "/session/v1/link?token=" + link->token}});
    }
  }
  slot_ = people_.get();
  return {};
}

void PeoplePart::Stop() {
  slot_ = nullptr;
  if (people_) people_->Stop();
}

}  // namespace tollgate::auth
