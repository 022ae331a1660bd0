// Converts rows of people to resources of tollgate.admin.v1.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <optional>
#include <string>

#include "services/people/storage/people_store.h"
#include "tollgate/admin/v1/members.pb.h"
#include "tollgate/admin/v1/users.pb.h"

namespace tollgate::people {

inline void SetTime(int64_t us, google::protobuf::Timestamp& into) {
  into.set_seconds(us / 1'000'000);
  into.set_nanos(static_cast<int32_t>(us % 1'000'000 * 1000));
}
// Clamped to the years 1 to 9999.
int64_t UsOf(const google::protobuf::Timestamp& time);

void Fill(const PeopleStore::PersonView& view, admin::v1::User& out);
void Fill(const Session& session, const std::string& current, admin::v1::Session& out);
void Fill(const AccessToken& token, admin::v1::AccessToken& out);
void Fill(const Member& member, const std::string& workspace, admin::v1::Member& out);
void Fill(const Invitation& invitation, admin::v1::Invitation& out);

}  // namespace tollgate::people
