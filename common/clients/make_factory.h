// The one place where clients meet channels: called by the process host.
#pragma once

#include <memory>

#include "common/clients/direct.h"
#include "common/clients/factory.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate {

namespace rpc {
class ChannelSource;
}

// direct is what modules of this process offer: it serves empty targets, as far as it is filled in
// when a client is made. Both must outlive the factory, and "inproc:" must lead somewhere once the
// first client is made.
std::unique_ptr<ClientFactory> MakeClientFactory(const config::v1::TargetsConfig& targets,
                                                 rpc::ChannelSource& channels,
                                                 const DirectServices& direct);

}  // namespace tollgate
