#include "services/people/rpc/people_convert.h"

#include <algorithm>

namespace tollgate::people {

namespace pb = tollgate::admin::v1;

int64_t UsOf(const google::protobuf::Timestamp& time) {
  const int64_t seconds = std::clamp<int64_t>(time.seconds(), -62'135'596'800, 253'402'300'799);
  return seconds * 1'000'000 + time.nanos() / 1000;
}

void Fill(const PeopleStore::PersonView& view, pb::User& out) {
  const Person& person = view.person;
  out.set_name("users/" + person.user_id);
  out.set_email(person.email);
  out.set_display_name(person.display_name);
  out.set_state(person.active() ? pb::USER_STATE_ACTIVE : pb::USER_STATE_DISABLED);
  out.set_platform_operator(person.platform_operator);
  out.set_totp_enabled(!person.totp_sealed.empty());
  out.set_has_password(!person.password_hash.empty());
  SetTime(person.created_us, *out.mutable_create_time());
  for (const Membership& membership : view.memberships) {
    auto* added = out.add_memberships();
    added->set_workspace("workspaces/" + membership.workspace);
    added->set_role(std::string(admin::RoleName(membership.role)));
  }
}

void Fill(const Session& session, const std::string& current, pb::Session& out) {
  out.set_name("users/" + session.user_id + "/sessions/" + session.id);
  out.set_address(session.address);
  out.set_user_agent(session.user_agent);
  SetTime(session.created_us, *out.mutable_create_time());
  SetTime(session.used_us, *out.mutable_last_used_time());
  SetTime(session.expires_us, *out.mutable_expire_time());
  out.set_current(session.id == current);
}

void Fill(const AccessToken& token, pb::AccessToken& out) {
  out.set_name("users/" + token.user_id + "/tokens/" + token.id);
  out.set_display_name(token.name);
  for (const std::string& scope : token.scopes) out.add_scopes(scope);
  SetTime(token.expires_us, *out.mutable_expire_time());
  SetTime(token.created_us, *out.mutable_create_time());
  if (token.used_us > 0) SetTime(token.used_us, *out.mutable_last_used_time());
  out.set_last_four(token.last_four);
}

void Fill(const Member& member, const std::string& workspace, pb::Member& out) {
  out.set_name("workspaces/" + workspace + "/members/" + member.person.user_id);
  out.set_role(std::string(admin::RoleName(member.role)));
  out.set_email(member.person.email);
  out.set_display_name(member.person.display_name);
  SetTime(member.since_us, *out.mutable_create_time());
  out.set_totp_enabled(!member.person.totp_sealed.empty());
}

void Fill(const Invitation& invitation, pb::Invitation& out) {
  out.set_name("workspaces/" + invitation.workspace + "/invitations/" + invitation.id);
  out.set_email(invitation.email);
  out.set_role(std::string(admin::RoleName(invitation.role)));
  out.set_actor(invitation.actor);
  SetTime(invitation.created_us, *out.mutable_create_time());
  SetTime(invitation.expires_us, *out.mutable_expire_time());
}

}  // namespace tollgate::people
