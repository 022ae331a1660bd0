#include "services/billing/archive/archive_scratch.h"

#include <cstdlib>
#include <filesystem>

#include "common/base/try.h"
#include "services/billing/storage/store.h"

namespace tollgate::billing {

using sql::SqlResult;

ArchiveScratch::~ArchiveScratch() {
  db_.reset();
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

std::string ArchiveScratch::Open(const std::string& otherwise) {
  std::error_code failed;
  const auto temporary = std::filesystem::temp_directory_path(failed).string();
  for (const std::string& parent : {temporary, otherwise}) {
    std::string folder = parent + "/tollgate-archive-XXXXXX";
    if (!folder_.empty() || parent.empty() || ::mkdtemp(folder.data()) == nullptr) continue;
    folder_ = folder;
  }
  if (folder_.empty()) {
    return "cannot make a folder for temporary files in " + temporary + " or " + otherwise;
  }
  auto database = sql::Database::Open({.url = "sqlite:" + folder_ + "/rows"});
  if (!database.ok()) return database.error().message;
  if (auto migrated = MigrateLedger(**database); !migrated.ok()) return migrated.error().message;
  auto connection = (*database)->Connect();
  if (!connection.ok()) return connection.error().message;
  db_ = std::move(*connection);
  return "";
}

SqlResult<void> ArchiveScratch::Load(CsvReader& file, const std::string& table,
                                     const std::string& workspace) {
  std::string columns;
  std::string values;
  for (size_t i = 0; i < file.columns().size(); ++i) {
    if (i > 0) columns += ", ";
    columns += file.columns()[i];
    values += (i > 0 ? ", $" : "$") + std::to_string(i + 1);
  }
  const std::string text = "INSERT INTO " + table + " (" + columns + ") VALUES (" + values + ")";
  for (; file.more() && file.workspace() == workspace; file.Next()) {
    TRY(db_->Execute(text, file.Values()));
  }
  return file.failed().empty() ? SqlResult<void>() : sql::Refused(file.failed());
}

}  // namespace tollgate::billing
