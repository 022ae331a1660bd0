// Failures and audit events that the files of SignIn share.
#pragma once

#include <string>
#include <utility>

#include "services/people/sign_in/sign_in.h"

namespace tollgate::people {

inline Fail<admin::Failure> SignInFailed() {
  return Fail{admin::Failure{.code = grpc::StatusCode::UNAUTHENTICATED,
                             .reason = "SIGN_IN_FAILED",
                             .message = "the sign-in failed: check what you entered"}};
}

inline AuditRecord SignInEvent(std::string actor, std::string action, std::string subject,
                               std::string detail, const Browser& browser) {
  AuditRecord record;
  record.actor = std::move(actor);
  record.action = std::move(action);
  record.subject = std::move(subject);
  record.detail = std::move(detail);
  record.address = browser.address;
  return record;
}

}  // namespace tollgate::people
