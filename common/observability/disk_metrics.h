// How much room is left where a process keeps its files.
#pragma once

#include <memory>
#include <string>

namespace tollgate::metrics {

// Keeps tollgate_disk_free_bytes and tollgate_disk_size_bytes of the file system that has this file
// or folder current, with the label folder: `name`, a word for what is kept there. Until the
// returned handle is destroyed.
std::shared_ptr<void> ReportDisk(const std::string& name, const std::string& path);
// For a database: of SQLite's file. Null for databases that are elsewhere.
std::shared_ptr<void> ReportDatabaseDisk(const std::string& name, const std::string& url);

}  // namespace tollgate::metrics
