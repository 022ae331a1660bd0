// Calls of auth's admin services as the operator of the installation, at any replica that responds.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "tests/support/process.h"
#include "tollgate/common/v1/identity.pb.h"

namespace tollgate::test {

class AuthAdmin {
 public:
  // addresses: the admin services of the replicas.
  explicit AuthAdmin(const std::vector<std::string>& addresses) {
    for (const std::string& address : addresses) {
      channels_.push_back(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
    }
  }

  // Tries the next replica while one is unreachable, for at most 20 s: a request that changes
  // something needs a request_id.
  template <typename Stub, typename Request, typename Response>
  grpc::Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response) {
    grpc::Status status;
    const int64_t deadline_us = MonotonicUs() + 60'000'000;
    do {
      grpc::ClientContext context;
      common::v1::Identity identity;
      identity.set_actor("user:operator");
      identity.set_user_id("operator");
      identity.set_platform_operator(true);
      identity.set_installation(true);
      identity.set_signed_in_us(SystemClock::Get().WallUs());
      context.AddMetadata("tollgate-identity-bin", identity.SerializeAsString());
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(2));
      Stub stub(channels_[next_ % channels_.size()]);
      status = (stub.*method)(&context, request, response);
      if (status.error_code() != grpc::StatusCode::UNAVAILABLE &&
          status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) {
        break;
      }
      ++next_;
      SleepMs(20);
    } while (MonotonicUs() < deadline_us);
    return status;
  }

 private:
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  size_t next_ = 0;
};

}  // namespace tollgate::test
