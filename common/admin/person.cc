#include "common/admin/person.h"

#include <string_view>

#include "common/admin/access.h"
#include "common/base/try.h"

namespace tollgate::admin {
namespace {

constexpr char kUnproved[] = "PERSON_NOT_PROVED";

// "cert" of "cert:anna".
std::string_view KindOf(std::string_view actor) { return actor.substr(0, actor.find(':')); }

bool IsProvedKind(std::string_view kind) { return kind == "cert" || kind == "user"; }

std::optional<Failure> WhyUnproved(const Caller& caller) {
  if (auto fresh = RequireStepUp(caller); !fresh) return fresh.error();
  if (caller.verified) return std::nullopt;
  return PermissionDenied(kUnproved,
                          "this needs two operators who are known by client certificates or by "
                          "sessions of the dashboard; the name of " +
                              caller.actor + " was not checked")
      .error;
}

}  // namespace

Person PersonOf(const Caller& caller) {
  Person person{.actor = caller.actor, .account = caller.actor, .unproved = WhyUnproved(caller)};
  if (!caller.verified) {
    person.account = "unverified";
  } else if (!caller.user_id.empty()) {
    person.account = "user:" + caller.user_id;
  }
  return person;
}

AdminResult<void> RequireProved(const Person& person) {
  if (person.unproved) return Fail{*person.unproved};
  return {};
}

AdminResult<void> RequireSecondPerson(const Person& second, const std::string& first_actor) {
  TRY(RequireProved(second));
  if (second.actor == first_actor) {
    return Precondition("SAME_PERSON",
                        "the requester may not be the second person; another operator must");
  }
  const std::string_view first = KindOf(first_actor);
  if (!IsProvedKind(first)) {
    return Precondition(kUnproved, "the name of the requester, " + first_actor +
                                       ", was not checked: reject this and request it again");
  }
  if (first != KindOf(second.actor)) {
    return Precondition(kUnproved,
                        std::string(first == "cert" ? "this was requested with a client certificate"
                                                    : "this was requested in the dashboard") +
                            ": the second person must do the same, because one human "
                            "may have a certificate and an account");
  }
  return {};
}

}  // namespace tollgate::admin
