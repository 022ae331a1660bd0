#include "services/people/rules/mail_text.h"

#include "common/mail/mail.h"

namespace tollgate::people {
namespace {

constexpr size_t kMaxText = 2000;
constexpr std::string_view kEnd = "\r\n";

std::string Line(std::string_view text) {
  return mail::OneLine(text, kMaxText) + std::string(kEnd);
}
std::string From(std::string_view address) {
  return address.empty() ? "" : Line("IP address of the request: " + std::string(address));
}

}  // namespace

MailContent InvitationMail(std::string_view inviter, std::string_view workspace,
                           std::string_view role, std::string_view link) {
  const std::string who = inviter.empty() ? "An operator of Tollgate" : std::string(inviter);
  return {.subject = "Invitation to a Tollgate workspace",
          .body = Line(who + " invites you to the workspace " + std::string(workspace) + " as " +
                       std::string(role) + ".") +
                  std::string(kEnd) + Line("Accept the invitation within seven days:") +
                  Line(link) + std::string(kEnd) +
                  Line("If you do not know the sender, ignore this email.")};
}

MailContent PasswordResetMail(std::string_view link, std::string_view address) {
  return {
      .subject = "Reset your Tollgate password",
      .body = Line("Someone requested a new password for your Tollgate account.") + From(address) +
              std::string(kEnd) +
              Line("Set a new password with this link. It works once and expires after one hour:") +
              Line(link) + std::string(kEnd) +
              Line("If this was not you, ignore this email. Your password does not change.")};
}

MailContent NoPasswordMail(std::string_view address) {
  return {.subject = "Signing in to Tollgate",
          .body = Line("Someone requested a new password for your Tollgate account.") +
                  From(address) + std::string(kEnd) +
                  Line("Your account has no password. Sign in with SSO.") +
                  Line("If this was not you, ignore this email.")};
}

MailContent SecurityMail(SecurityChange change, std::string_view address) {
  std::string what;
  switch (change) {
    case SecurityChange::kPassword:
      what = "The password of your Tollgate account was changed.";
      break;
    case SecurityChange::kTotpOn:
      what = "Two-factor authentication was turned on for your Tollgate account.";
      break;
    case SecurityChange::kTotpOff:
      what = "Two-factor authentication was turned off for your Tollgate account.";
      break;
    case SecurityChange::kTotpReset:
      what =
          "An operator turned off two-factor authentication for your Tollgate account and ended "
          "your sessions.";
      break;
    case SecurityChange::kToken:
      what = "An access token was created for your Tollgate account.";
      break;
  }
  return {.subject = "Security of your Tollgate account",
          .body = Line(what) +
                  // Do not disclose an operator's address to the person.
                  (change == SecurityChange::kTotpReset ? "" : From(address)) + std::string(kEnd) +
                  Line("If this was not you, set a new password immediately, end your sessions, "
                       "delete your access tokens, and contact an operator of this installation.")};
}

}  // namespace tollgate::people
