// The one place where clients meet channels: called by the process host.
#pragma once

#include <functional>
#include <memory>

#include "common/clients/factory.h"
#include "tollgate/config/v1/config.pb.h"

namespace grpc {
class Channel;
}

namespace tollgate {

// in_process gives a new channel to this process's own gRPC server; it is called only once the server
// runs. An error names the target or the TLS file that is wrong.
Result<std::unique_ptr<ClientFactory>> MakeClientFactory(
    const config::v1::TargetsConfig& targets, const config::v1::TlsConfig& tls,
    std::function<std::shared_ptr<grpc::Channel>()> in_process);

}  // namespace tollgate
