// Free space of the file systems where a process keeps its files.
#pragma once

#include <memory>
#include <string>

namespace tollgate::metrics {

// Keeps tollgate_disk_free_bytes and tollgate_disk_size_bytes of the file system of this file or
// folder current, with the label folder: `name`. Stops when the returned handle is destroyed.
std::shared_ptr<void> ReportDisk(const std::string& name, const std::string& path);
// As ReportDisk, for the file of a SQLite database. Null for other databases.
std::shared_ptr<void> ReportDatabaseDisk(const std::string& name, const std::string& url);

}  // namespace tollgate::metrics
