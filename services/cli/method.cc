#include "services/cli/method.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tollgate::cli {

// All other services are in billing.
constexpr std::array<std::string_view, 6> kServicesOfAuth = {"AuditService", "InvitationService",
                                                             "KeyService",   "LimitService",
                                                             "UserService",  "WorkspaceService"};

Method Method::Of(const std::string& name) {
  return Method(*google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
      "tollgate.admin.v1." + name));
}

const google::protobuf::Message& Method::Empty(const google::protobuf::Descriptor& type) {
  return *google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type);
}

const char* Method::process() const {
  return std::ranges::find(kServicesOfAuth, method_.service()->name()) != kServicesOfAuth.end()
             ? "auth"
             : "billing";
}

std::string Method::path() const {
  return "/" + method_.service()->full_name() + "/" + method_.name();
}

}  // namespace tollgate::cli
