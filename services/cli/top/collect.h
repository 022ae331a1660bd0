// Reads the metrics of all sources at the same time.
#pragma once

#include <string>
#include <vector>

#include "services/cli/doctor/inventory.h"
#include "services/cli/top/figures.h"

namespace tollgate::cli {

// Processes of the configuration (host.ops_listen), and engines of its catalogs that report their
// queue.
std::vector<Source> SourcesOf(const Inventory& inventory);
// The process that `./dev run` has started, from its address file; empty if there is none.
std::vector<Source> SourcesOfHome(const std::string& home);

// Sources that miss the timeout are left out (Process.answers is false).
Reading ReadAll(const std::vector<Source>& sources, int timeout_ms);

}  // namespace tollgate::cli
