#include "services/auth/people/mail_text.h"

#include "common/mail/mail.h"

namespace tollgate::auth {
namespace {

constexpr size_t kMaxText = 2000;
constexpr std::string_view kEnd = "\r\n";

std::string Line(std::string_view text) {
  return mail::OneLine(text, kMaxText) + std::string(kEnd);
}
std::string From(std::string_view address) {
  return address.empty() ? "" : Line("From the network address " + std::string(address) + ".");
}

}  // namespace

MailContent InvitationMail(std::string_view inviter, std::string_view workspace,
                           std::string_view role, std::string_view link) {
  const std::string who = inviter.empty() ? "An operator of Tollgate" : std::string(inviter);
  return {.subject = "Invitation to a Tollgate workspace",
          .body = Line(who + " invites you to the workspace " + std::string(workspace) + " as " +
                       std::string(role) + ".") +
                  std::string(kEnd) + Line("Accept within seven days:") + Line(link) +
                  std::string(kEnd) +
                  Line("If you do not know who this is, ignore this mail: nothing happens then.")};
}

MailContent PasswordResetMail(std::string_view link, std::string_view address) {
  return {.subject = "New password for Tollgate",
          .body = Line("A new password for your Tollgate account was asked for.") + From(address) +
                  std::string(kEnd) + Line("Set it within an hour; the link works once:") +
                  Line(link) + std::string(kEnd) +
                  Line("If this was not you, ignore this mail: your password stays as it is.")};
}

MailContent NoPasswordMail(std::string_view address) {
  return {.subject = "Sign-in to Tollgate",
          .body = Line("A new password for your Tollgate account was asked for.") + From(address) +
                  std::string(kEnd) +
                  Line("Your account has no password: sign in with your provider.") +
                  Line("If this was not you, ignore this mail.")};
}

MailContent SecurityMail(SecurityChange change, std::string_view address) {
  std::string what;
  switch (change) {
    case SecurityChange::kPassword:
      what = "The password of your Tollgate account was changed.";
      break;
    case SecurityChange::kTotpOn:
      what = "The second step of your Tollgate account was switched on.";
      break;
    case SecurityChange::kTotpOff:
      what = "The second step of your Tollgate account was switched off.";
      break;
    case SecurityChange::kTotpReset:
      what =
          "An operator switched off the second step of your Tollgate account, and ended your "
          "sessions.";
      break;
    case SecurityChange::kToken:
      what = "An access token was made for your Tollgate account.";
      break;
  }
  return {.subject = "Security of your Tollgate account",
          .body = Line(what) +
                  // Do not disclose an operator's address to the person.
                  (change == SecurityChange::kTotpReset ? "" : From(address)) + std::string(kEnd) +
                  Line("If this was not you, set a new password at once, end your sessions and "
                       "tokens, and tell the operators of this Tollgate.")};
}

}  // namespace tollgate::auth
