// CPU, memory, descriptors and build of this process, read from /proc when somebody scrapes.
#pragma once

#include <string>
#include <string_view>

namespace tollgate::host {

// Sets the build_info metric; once per process.
void RegisterProcessMetrics(std::string_view process_name);
// Brings the process metrics up to date.
void UpdateProcessMetrics();
// {"name":…,"version":…,"compiler":…} for /version and --version.
std::string BuildInformationJson(std::string_view process_name);

}  // namespace tollgate::host
