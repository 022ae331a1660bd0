#include "services/auth/storage/people_tx.h"

#include "common/base/try.h"

namespace tollgate::auth {

using sql::SqlResult;

Fail<admin::Failure> PeopleTx::Failed(const sql::SqlError& error) {
  error_ = error;
  return Fail{admin::FromError(ToError(error))};
}

AdminResult<void> PeopleTx::Query(std::string_view text, std::initializer_list<sql::Param> params,
                                  const sql::RowFn& row) {
  auto done = connection_.Query(text, params, row);
  if (!done) return Failed(done.error());
  return {};
}

AdminResult<int64_t> PeopleTx::Execute(std::string_view text,
                                       std::initializer_list<sql::Param> params) {
  auto done = connection_.Execute(text, params);
  if (!done) return Failed(done.error());
  return *done;
}

AdminResult<void> PeopleTx::Audit(AuditRecord record) {
  record.at_us = now_us_;
  auto done = AppendAudit(connection_, std::move(record));
  if (!done) return Failed(done.error());
  return {};
}

AdminResult<void> PeopleDatabase::Write(const Body& body) {
  return Run(sql::TxMode::kWrite, [&](PeopleTx& tx) -> AdminResult<void> {
    TRY(tx.Query("SELECT version FROM auth_head WHERE id = 1 FOR UPDATE", {},
                 [](const sql::Row&) {}));
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

}  // namespace tollgate::auth
