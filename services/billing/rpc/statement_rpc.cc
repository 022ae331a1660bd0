#include <charconv>

#include "common/base/clock.h"
#include "common/base/try.h"
#include "common/base/utc_text.h"
#include "services/billing/reports/transactions.h"
#include "services/billing/rpc/admin_calls.h"
#include "services/billing/statement/statement.h"
#include "tollgate/admin/v1/statements.grpc.pb.h"

namespace tollgate::billing {
namespace {

namespace pb = tollgate::admin::v1;

using admin::AdminResult;
using admin::Caller;
using admin::FormatUsd;
using admin::Parts;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

// Below the 4 MiB limit of a gRPC message.
constexpr size_t kMaxDocument = size_t{7} << 19;

// Parses "2026-11" to 202611.
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

AdminResult<int32_t> MonthOfName(const Parts& name, int64_t now_us) {
  const auto month = MonthOf(name[1]);
  if (month && *month <= UtcMonth(now_us)) return *month;
  return admin::InvalidField("name", "a month that has begun is required, such as 2026-11");
}

void Fill(const std::vector<StatementLine>& lines,
          google::protobuf::RepeatedPtrField<pb::StatementLine>& into) {
  for (const StatementLine& line : lines) {
    pb::StatementLine& one = *into.Add();
    one.set_item(line.name);
    one.set_requests(line.requests);
    one.set_amount_usd(FormatUsd(line.amount_nano_usd));
  }
}

void Fill(const Statement& statement, pb::Statement& into) {
  into.set_name("workspaces/" + statement.workspace + "/statements/" +
                UtcMonthText(statement.month));
  int64_t added = 0, removed = 0, used = 0;
  for (const StatementLine& line : statement.movements) {
    int64_t& total = line.name == kUsageLine ? used : line.amount_nano_usd > 0 ? added : removed;
    total += line.amount_nano_usd;
  }
  into.set_number(statement.number);
  into.set_opening_usd(FormatUsd(statement.opening_nano_usd));
  into.set_closing_usd(FormatUsd(statement.closing_nano_usd));
  into.set_added_usd(FormatUsd(added));
  into.set_removed_usd(FormatUsd(-removed));
  into.set_used_usd(FormatUsd(-used));
  Fill(statement.movements, *into.mutable_movements());
  into.set_opening_receivable_usd(FormatUsd(statement.opening_receivable_nano_usd));
  into.set_closing_receivable_usd(FormatUsd(statement.closing_receivable_nano_usd));
  Fill(statement.receivable_movements, *into.mutable_receivable_movements());
  Fill(statement.by_model, *into.mutable_usage_by_model());
  Fill(statement.by_key, *into.mutable_usage_by_key());
  if (statement.preliminary_us > 0) {
    SetTime(statement.preliminary_us, *into.mutable_preliminary_time());
  }
}

AdminResult<void> RequireWallet(sql::Database& database, const std::string& workspace) {
  auto open = HasWallet(database, workspace);
  if (!open.ok()) return SqlFailure(open);
  if (!*open) return Fail{NoWallet(workspace)};
  return {};
}

AdminResult<Statement> Read(sql::Database& database, const Parts& name, int64_t now_us) {
  const std::string& workspace = name[0];
  TRY(auto month, MonthOfName(name, now_us));
  TRY(RequireWallet(database, workspace));
  auto connection = database.Borrow();
  if (!connection.ok()) return SqlFailure(connection);
  auto statement = ReadStatement(**connection, workspace, month, now_us);
  // The month is archived, or the ledger contradicts itself.
  if (!statement.ok() && !statement.error().retryable()) {
    return admin::Precondition("STATEMENT_UNAVAILABLE", statement.error().message);
  }
  if (!statement.ok()) return SqlFailure(statement);
  return *std::move(statement);
}

class StatementRpc : public pb::StatementService::CallbackService {
 public:
  explicit StatementRpc(LedgerService& ledger) : ledger_(ledger) {}

  ServerUnaryReactor* GetStatement(CallbackServerContext* context,
                                   const pb::GetStatementRequest* request,
                                   pb::Statement* response) override {
    return admin::Handle(
        context, request, response, OnReports{ledger_},
        [=, this](sql::Database& database, const Caller&, const Parts& name) -> AdminResult<void> {
          TRY(auto statement, Read(database, name, ledger_.NowUs()));
          Fill(statement, *response);
          return {};
        });
  }

  ServerUnaryReactor* ListStatements(CallbackServerContext* context,
                                     const pb::ListStatementsRequest* request,
                                     pb::ListStatementsResponse* response) override {
    return admin::Handle(
        context, request, response, OnReports{ledger_},
        [=, this](sql::Database& database, const Caller& caller,
                  const Parts& name) -> AdminResult<void> {
          TRY(auto page, admin::PageOfList(*request, caller));
          // The position is the last month of the previous page.
          const auto before = page.position.empty() ? std::nullopt : MonthOf(page.position);
          if (!page.position.empty() && !before) return admin::InvalidPageToken();
          TRY(RequireWallet(database, name[0]));
          auto connection = database.Borrow();
          if (!connection.ok()) return SqlFailure(connection);
          auto statements = ReadStatements(**connection, name[0], ledger_.NowUs());
          if (!statements.ok()) return SqlFailure(statements);
          std::erase_if(*statements,
                        [&](const Statement& one) { return before && one.month >= *before; });
          for (; !statements->empty() && response->statements_size() < page.size;
               statements->pop_back()) {
            Fill(statements->back(), *response->add_statements());
            const int32_t month = statements->back().month;
            if (statements->size() > 1 && response->statements_size() == page.size) {
              response->set_next_page_token(
                  admin::EncodePageToken(page.binding, UtcMonthText(month)));
            }
          }
          return {};
        });
  }

  ServerUnaryReactor* DownloadStatement(CallbackServerContext* context,
                                        const pb::DownloadStatementRequest* request,
                                        google::api::HttpBody* response) override {
    return admin::Handle(
        context, request, response, OnReports{ledger_},
        [=, this](sql::Database& database, const Caller&, const Parts& name) -> AdminResult<void> {
          const bool csv = request->format() == pb::STATEMENT_FORMAT_CSV;
          if (!csv && request->format() != pb::STATEMENT_FORMAT_UNSPECIFIED &&
              request->format() != pb::STATEMENT_FORMAT_PDF) {
            return admin::InvalidField("format", "PDF or CSV is required");
          }
          TRY(auto statement, Read(database, name, ledger_.NowUs()));
          std::string text = csv ? ToCsv(statement) : ToPdf(statement);
          if (text.empty()) return Fail{admin::FromError(Internal("the PDF failed").error)};
          if (text.size() > kMaxDocument) {
            return admin::Precondition(
                "STATEMENT_TOO_LARGE",
                "the statement is too large for one response; write it on the server with: "
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
