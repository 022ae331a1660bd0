#include "services/people/storage/people_tx.h"

#include "common/audit/log.h"
#include "common/auth_schema/auth_schema.h"
#include "common/base/try.h"

namespace tollgate::people {

using sql::SqlResult;

template <typename T>
AdminResult<T> PeopleTx::Checked(SqlResult<T> result) {
  if (!result) {
    error_ = result.error();
    return Fail{admin::FromError(ToError(*error_))};
  }
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    return *std::move(result);
  }
}

AdminResult<void> PeopleTx::Query(std::string_view text, std::initializer_list<sql::Param> params,
                                  const sql::RowFn& row) {
  return Checked(connection_.Query(text, params, row));
}

AdminResult<int64_t> PeopleTx::Execute(std::string_view text,
                                       std::initializer_list<sql::Param> params) {
  return Checked(connection_.Execute(text, params));
}

AdminResult<void> PeopleTx::LockHead() { return Checked(auth_schema::LockHead(connection_)); }

AdminResult<bool> PeopleTx::HasWorkspace(std::string_view workspace) {
  return Checked(auth_schema::HasWorkspace(connection_, workspace));
}

AdminResult<void> PeopleTx::PutMembership(std::string_view workspace, std::string_view user_id,
                                          int64_t role) {
  return Checked(auth_schema::PutMembership(connection_, workspace, user_id, role, now_us_));
}

AdminResult<void> PeopleTx::Audit(AuditRecord record) {
  record.at_us = now_us_;
  return Checked(audit::Append(connection_, auth_schema::kAuditTables, std::move(record)));
}

AdminResult<void> PeopleDatabase::Write(const Body& body) {
  return Run(sql::TxMode::kWrite, [&](PeopleTx& tx) -> AdminResult<void> {
    TRY(tx.LockHead());
    return body(tx);
  });
}

AdminResult<void> PeopleDatabase::Read(const Body& body) { return Run(sql::TxMode::kRead, body); }

AdminResult<void> PeopleDatabase::Run(sql::TxMode mode, const Body& body) {
  AdminResult<void> result;
  const auto done = database_.Transact(mode, [&](sql::Connection& connection) -> SqlResult<void> {
    PeopleTx tx(connection, clock_.WallUs());
    result = body(tx);
    if (tx.error()) return Fail{*tx.error()};
    if (!result) return Fail{sql::SqlError{sql::ErrorKind::kOther, "refused"}};
    return {};
  });
  if (done) return {};
  if (!result) return result;
  return Fail{admin::FromError(ToError(done.error()))};
}

}  // namespace tollgate::people
