// The people part of auth: its settings, services and threads.
#pragma once

#include <grpcpp/server_builder.h>

#include <memory>
#include <vector>

#include "common/error/error.h"
#include "services/auth/rpc/people.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::auth {

class PeoplePart {
 public:
  PeoplePart(const config::v1::AuthSettings& settings, const Clock& clock);
  ~PeoplePart() { Stop(); }

  void Register(grpc::ServerBuilder& builder);
  // The database must be migrated, and outlive Stop. Fails for invalid settings.
  Result<void> Start(sql::Database& database);
  void Stop();

 private:
  const config::v1::AuthSettings settings_;
  const Clock& clock_;
  PeopleSlot slot_{nullptr};
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<People> people_;
};

}  // namespace tollgate::auth
