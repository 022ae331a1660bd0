// Reads the metrics of all sources at the same time.
#pragma once

#include <string>
#include <vector>

#include "services/cli/doctor/inventory.h"
#include "services/cli/top/figures.h"

namespace tollgate::cli {

// The processes of the configuration (host.ops_listen), and the engines of its catalogs that tell
// how many requests wait in them.
std::vector<Source> SourcesOf(const Inventory& inventory);
// The process that `./dev run` has started, from its address file; empty when there is none.
std::vector<Source> SourcesOfHome(const std::string& home);

// Those that do not answer within the time-out are left out (Process.answers false).
Reading ReadAll(const std::vector<Source>& sources, int timeout_ms);

}  // namespace tollgate::cli
