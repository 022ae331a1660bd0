// CPU time, memory, file descriptors and build of this process, read when metrics are scraped.
#pragma once

#include <string>
#include <string_view>

namespace tollgate::host {

// Sets the metrics that never change. Call it once per process.
void RegisterProcessMetrics(std::string_view process_name);
// Updates the other metrics. Call it before each scrape.
void UpdateProcessMetrics();
// {"name":…,"version":…,"compiler":…} for /version and --version.
std::string BuildInformationJson(std::string_view process_name);

}  // namespace tollgate::host
