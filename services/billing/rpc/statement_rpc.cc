#include <charconv>

#include "common/base/clock.h"
#include "services/billing/rpc/admin_calls.h"
#include "services/billing/storage/statement.h"
#include "services/billing/storage/transactions.h"
#include "tollgate/admin/v1/statements.grpc.pb.h"

namespace tollgate::billing {
namespace {

namespace pb = tollgate::admin::v1;

using admin::AdminResult;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

constexpr std::string_view kStatementName = "workspaces/*/statements/*";
// Below the limit of a message, which is 4 MiB.
constexpr size_t kMaxDocument = size_t{7} << 19;

// "2026-11" as 202611.
std::optional<int32_t> MonthOf(const std::string& text) {
  int year = 0, month = 0;
  const char* data = text.data();
  if (text.size() != 7 || text[4] != '-' || std::from_chars(data, data + 4, year).ptr != data + 4 ||
      std::from_chars(data + 5, data + 7, month).ptr != data + 7 || year < 2000 || month < 1 ||
      month > 12) {
    return std::nullopt;
  }
  return year * 100 + month;
}

AdminResult<Statement> Read(sql::Database& database, const std::string& workspace, int32_t month,
                            int64_t now_us) {
  auto open = HasWallet(database, workspace);
  if (!open.ok()) return SqlFailure(open);
  if (!*open) return Fail{NoWallet(workspace)};
  auto connection = database.Borrow();
  if (!connection.ok()) return SqlFailure(connection);
  auto statement = ReadStatement(**connection, workspace, month, now_us);
  // Archived, or a ledger that contradicts itself.
  if (!statement.ok() && !statement.error().retryable()) {
    return admin::Precondition("STATEMENT_UNAVAILABLE", statement.error().message);
  }
  if (!statement.ok()) return SqlFailure(statement);
  return *std::move(statement);
}

class StatementRpc : public pb::StatementService::CallbackService {
 public:
  explicit StatementRpc(LedgerService& ledger) : ledger_(ledger) {}

  ServerUnaryReactor* DownloadStatement(CallbackServerContext* context,
                                        const pb::DownloadStatementRequest* request,
                                        google::api::HttpBody* response) override {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return Refused(context, caller.error());
    auto parts = admin::NameParts(kStatementName, request->name(), "name");
    if (!parts) return Refused(context, parts.error());
    const auto month = MonthOf(parts->back());
    if (!month || *month > UtcMonth(ledger_.NowUs())) {
      return Refused(
          context,
          admin::InvalidField("name", "a month that has begun is required, such as 2026-11").error);
    }
    const bool csv = request->format() == pb::STATEMENT_FORMAT_CSV;
    if (!csv && request->format() != pb::STATEMENT_FORMAT_UNSPECIFIED &&
        request->format() != pb::STATEMENT_FORMAT_PDF) {
      return Refused(context, admin::InvalidField("format", "PDF or CSV is required").error);
    }
    return RunAdminRead(
        ledger_, context,
        [this, workspace = parts->front(), month = *month, csv,
         response](sql::Database& database) -> AdminResult<void> {
          auto statement = Read(database, workspace, month, ledger_.NowUs());
          if (!statement) return Fail{statement.error()};
          std::string text = csv ? ToCsv(*statement) : ToPdf(*statement);
          if (text.empty()) return Fail{admin::FromError(Internal("the PDF failed").error)};
          if (text.size() > kMaxDocument) {
            return admin::Precondition(
                "STATEMENT_TOO_LARGE",
                "the statement is too large for a call; write it beside the database with: "
                "tollgate statement --database URL");
          }
          response->set_content_type(csv ? "text/csv; charset=utf-8" : "application/pdf");
          response->set_data(std::move(text));
          return {};
        });
  }

 private:
  LedgerService& ledger_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeStatementAdmin(LedgerService& ledger) {
  return std::make_unique<StatementRpc>(ledger);
}

}  // namespace tollgate::billing
