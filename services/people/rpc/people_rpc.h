// SessionService for the dashboard, and the people resources of tollgate.admin.v1. Calls get
// UNAVAILABLE while the slot is empty.
#pragma once

#include <memory>

#include "services/people/rpc/people.h"

namespace grpc {
class Service;
}

namespace tollgate::people {

std::unique_ptr<grpc::Service> MakeSessionRpc(const PeopleSlot& people);
std::unique_ptr<grpc::Service> MakeUserRpc(const PeopleSlot& people);
std::unique_ptr<grpc::Service> MakeMemberRpc(const PeopleSlot& people);
std::unique_ptr<grpc::Service> MakeInvitationRpc(const PeopleSlot& people);
std::unique_ptr<grpc::Service> MakeSupportRpc(const PeopleSlot& people);

}  // namespace tollgate::people
