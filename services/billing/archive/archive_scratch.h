// A temporary database with the archived rows of one workspace and month, in the tables of the
// ledger, so that they are verified like the ledger itself.
#pragma once

#include <memory>
#include <string>

#include "common/sql/sql.h"
#include "services/billing/archive/archive_reader.h"

namespace tollgate::billing {

class ArchiveScratch {
 public:
  ~ArchiveScratch();

  // Makes the database in the folder of temporary files or, if that cannot be written, in this one.
  // Returns an empty string, or what failed.
  std::string Open(const std::string& otherwise);
  // Reads the rows of the workspace that are next in the file into the table. Between Begin and
  // End.
  sql::SqlResult<void> Load(CsvReader& file, const std::string& table,
                            const std::string& workspace);
  sql::SqlResult<void> Begin() { return db_->Begin(sql::TxMode::kWrite); }
  // Forgets the rows.
  void End() { db_->Rollback(); }

  sql::Connection& db() { return *db_; }

 private:
  std::string folder_;
  std::unique_ptr<sql::Connection> db_;
};

}  // namespace tollgate::billing
