// What the database knows of the files of each archived month, and whether a folder has them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/json/json.h"
#include "common/sql/sql.h"

namespace tollgate::billing {

// A row of the table archive.
struct ArchivedFiles {
  int32_t month = 0;
  int64_t cut_us = 0;
  std::string manifest;  // digest
  int64_t entries = 0, holds = 0, usage_records = 0;
};
// All archived months, oldest first.
sql::SqlResult<std::vector<ArchivedFiles>> ReadArchivedMonths(sql::Connection& db);

using ReportFn = std::function<void(const std::string& what)>;

// Returns nullopt after a report if the folder does not have the manifest that the database knows.
std::optional<json::Document> ReadManifest(const std::string& folder, const ArchivedFiles& files,
                                           const ReportFn& report);
// Returns whether the folder has all files of the manifest. Reports each difference.
bool CheckFiles(const json::Value& manifest, const std::string& folder, const ArchivedFiles& files,
                const ReportFn& report);

}  // namespace tollgate::billing
