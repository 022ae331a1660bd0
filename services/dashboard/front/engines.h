// Engines as all inference routers report them, merged.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "services/dashboard/front/ask_all.h"
#include "services/dashboard/front/peers.h"
#include "tollgate/admin/v1/engines.pb.h"
#include "tollgate/inference/v1/engines.pb.h"

namespace tollgate::dashboard {

using RouterAnswer = Answered<inference::v1::ReadEnginesResponse>;

// Keyed by engine id.
std::map<std::string, admin::v1::Engine> MergeEngines(const std::vector<RouterAnswer>& answers);

// Asks every router. FAILED_PRECONDITION ROUTERS_UNKNOWN if the targets contain no routers;
// UNAVAILABLE if none answers.
Task<admin::AdminResult<std::map<std::string, admin::v1::Engine>>> ReadEngines(const Peers& peers);

// The replica's address as people know it; "" for this process.
std::string AddressOf(const rpc::Replica& replica);

}  // namespace tollgate::dashboard
