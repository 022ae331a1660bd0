// Transactions of the people tables. Bodies return failures of the admin API; the database error is
// kept aside, so that the transaction can be retried.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>

#include "common/admin/failure.h"
#include "common/audit/chain.h"
#include "common/base/clock.h"
#include "common/sql/sql.h"

namespace tollgate::people {

using admin::AdminResult;
using AuditRecord = audit::Record;

// One transaction, as its body sees it.
class PeopleTx {
 public:
  PeopleTx(sql::Connection& connection, int64_t now_us)
      : connection_(connection), now_us_(now_us) {}

  int64_t now_us() const { return now_us_; }
  AdminResult<void> Query(std::string_view text, std::initializer_list<sql::Param> params,
                          const sql::RowFn& row);
  // Returns the number of changed rows.
  AdminResult<int64_t> Execute(std::string_view text, std::initializer_list<sql::Param> params);
  // Makes the changes of all services to this database wait until the transaction ends.
  AdminResult<void> LockHead();
  AdminResult<bool> HasWorkspace(std::string_view workspace);
  // Adds the member, or changes the role. role: common::v1::Role.
  AdminResult<void> PutMembership(std::string_view workspace, std::string_view user_id,
                                  int64_t role);
  // Appends an event to the audit log; sets its time.
  AdminResult<void> Audit(AuditRecord record);

  const std::optional<sql::SqlError>& error() const { return error_; }

 private:
  template <typename T>
  AdminResult<T> Checked(sql::SqlResult<T> result);

  sql::Connection& connection_;
  const int64_t now_us_;
  std::optional<sql::SqlError> error_;
};

// Runs the body and commits, or rolls back if it fails. The body may run several times, so it must
// reset its outputs. Writes are serialized, like all changes of auth: their order is that of the
// audit log.
class PeopleDatabase {
 public:
  PeopleDatabase(sql::Database& database, const Clock& clock)
      : database_(database), clock_(clock) {}

  using Body = std::function<AdminResult<void>(PeopleTx&)>;
  AdminResult<void> Write(const Body& body);
  AdminResult<void> Read(const Body& body);
  // A write outside this order, for changes that are not audited.
  AdminResult<void> Touch(const Body& body) { return Run(sql::TxMode::kWrite, body); }
  int64_t NowUs() const { return clock_.WallUs(); }

 private:
  AdminResult<void> Run(sql::TxMode mode, const Body& body);

  sql::Database& database_;
  const Clock& clock_;
};

}  // namespace tollgate::people
