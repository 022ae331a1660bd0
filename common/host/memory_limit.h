// The memory that this process may use.
#pragma once

#include <cstdint>
#include <string>

namespace tollgate::host {

// The lowest limit of the process's control groups (version 2 or 1), or the memory of the machine.
// root: for tests, a folder that contains proc and sys.
int64_t AvailableMemoryBytes(const std::string& root = "");

}  // namespace tollgate::host
