#include <chrono>

#include "common/base/try.h"
#include "common/observability/log.h"
#include "services/billing/rpc/admin_calls.h"
#include "services/billing/rpc/verify_runner.h"
#include "services/billing/verify/verifications.h"
#include "tollgate/admin/v1/verifications.grpc.pb.h"

namespace tollgate::billing {
namespace {

namespace pb = tollgate::admin::v1;

using admin::AdminResult;
using admin::Caller;
using admin::Parts;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

constexpr std::string_view kWorkspaceName = "workspaces/*";
constexpr auto kReportEach = std::chrono::seconds(1);

void Fill(const Verification& from, pb::LedgerVerification& into) {
  into.set_name("ledgerVerifications/" + from.id.ToHex());
  if (!from.workspace.empty()) into.set_workspace("workspaces/" + from.workspace);
  into.set_state(static_cast<pb::LedgerVerificationState>(from.state));
  into.set_workspaces(from.report.workspaces);
  into.set_entries(from.report.entries);
  into.set_holds(from.report.holds);
  into.set_usage_records(from.report.usage_records);
  for (const std::string& violation : from.report.violations) into.add_violations(violation);
  into.set_actor(from.actor);
  SetTime(from.created_us, *into.mutable_create_time());
  if (from.ended_us > 0) SetTime(from.ended_us, *into.mutable_end_time());
}

AdminResult<Id> IdOf(const Parts& name) {
  const auto id = Id::FromHex(name.front());
  if (!id) {
    return admin::InvalidField("name", "a verification's id is 32 lower-case hexadecimal digits");
  }
  return *id;
}

admin::Failure AlreadyRunning() {
  return admin::Precondition("ALREADY_RUNNING",
                             "a verification of the ledger is under way; wait for it or cancel it, "
                             "or run `tollgate verify-ledger --database URL` in parallel")
      .error;
}

class VerificationRpc : public pb::LedgerVerificationService::CallbackService {
 public:
  explicit VerificationRpc(LedgerService& ledger) : ledger_(ledger), runner_(ledger) {}

  ServerUnaryReactor* CreateLedgerVerification(CallbackServerContext* context,
                                               const pb::CreateLedgerVerificationRequest* request,
                                               pb::LedgerVerification* response) override {
    return admin::Handle(
        context, request, response, OnLedger{ledger_},
        [=, this](sql::Database& database, const Caller& caller) -> AdminResult<void> {
          Verification asked;
          if (const std::string& workspace = request->ledger_verification().workspace();
              !workspace.empty()) {
            TRY(auto parts,
                admin::NameParts(kWorkspaceName, workspace, "ledger_verification.workspace"));
            asked.workspace = parts.front();
          }
          asked.id = Id::New();
          asked.actor = caller.actor;
          asked.request_id = CommandIdOf(caller);
          return Begin(database, asked, OriginOf(caller), *response);
        });
  }

  ServerUnaryReactor* GetLedgerVerification(CallbackServerContext* context,
                                            const pb::GetLedgerVerificationRequest* request,
                                            pb::LedgerVerification* response) override {
    return admin::Handle(
        context, request, response, OnLedger{ledger_},
        [=, this](sql::Database& database, const Caller&, const Parts& name) -> AdminResult<void> {
          TRY(auto id, IdOf(name));
          return ReadInto(database, id, *response);
        });
  }

  ServerUnaryReactor* ListLedgerVerifications(
      CallbackServerContext* context, const pb::ListLedgerVerificationsRequest* request,
      pb::ListLedgerVerificationsResponse* response) override {
    return admin::Handle(
        context, request, response, OnLedger{ledger_},
        [=, this](sql::Database& database, const Caller& caller) -> AdminResult<void> {
          TRY(auto page, admin::PageOfList(*request, caller));
          const auto before = page.position.empty() ? Id() : Id::FromHex(page.position);
          if (!before) return admin::InvalidPageToken();
          auto rows = ListVerifications(database, *before, page.size + 1, ledger_.NowUs());
          if (!rows.ok()) return SqlFailure(rows);
          admin::FillPage(
              page, *rows, *response,
              [&](const Verification& one) { Fill(one, *response->add_ledger_verifications()); },
              [](const Verification& last) { return last.id.ToHex(); });
          return {};
        });
  }

  ServerUnaryReactor* CancelLedgerVerification(CallbackServerContext* context,
                                               const pb::CancelLedgerVerificationRequest* request,
                                               pb::LedgerVerification* response) override {
    return admin::Handle(context, request, response, OnLedger{ledger_},
                         [=, this](sql::Database& database, const Caller& caller,
                                   const Parts& name) -> AdminResult<void> {
                           TRY(auto id, IdOf(name));
                           auto cancelled =
                               CancelVerification(database, id, OriginOf(caller), ledger_.NowUs());
                           if (!cancelled.ok()) return SqlFailure(cancelled);
                           return ReadInto(database, id, *response);
                         });
  }

 private:
  AdminResult<void> ReadInto(sql::Database& database, const Id& id,
                             pb::LedgerVerification& response) {
    auto found = FindVerification(database, id, ledger_.NowUs());
    if (!found.ok()) return SqlFailure(found);
    if (!*found) return admin::NotFound("there is no such verification");
    Fill(**found, response);
    return {};
  }

  AdminResult<void> Begin(sql::Database& database, const Verification& asked,
                          const audit::Origin& by, pb::LedgerVerification& response) {
    // A run of this process may be alive even if it has not reported for long.
    auto begun = BeginVerification(database, asked, by, !runner_.running(), ledger_.NowUs());
    if (!begun.ok()) return SqlFailure(begun);
    if (begun->request_reused) return admin::RequestIdReused();
    if (!begun->verification) return Fail{AlreadyRunning()};
    if (begun->fresh && !Run(database, asked)) {
      // Another call started a run in this process meanwhile.
      (void)EndVerification(database, asked.id, VerificationState::kBrokenOff, {}, ledger_.NowUs());
      return Fail{AlreadyRunning()};
    }
    Fill(*begun->verification, response);
    return {};
  }

  // The database outlives the runner's thread.
  bool Run(sql::Database& database, const Verification& asked) {
    const auto next = std::make_shared<std::chrono::steady_clock::time_point>();
    return runner_.Start(
        asked.workspace,
        [this, &database, id = asked.id, next](const VerifyReport& report) {
          const auto now = std::chrono::steady_clock::now();
          if (now < *next) return true;
          *next = now + kReportEach;
          auto wanted = ReportVerification(database, id, report, ledger_.NowUs());
          // A run continues when its progress cannot be stored for a moment.
          return !wanted.ok() || *wanted;
        },
        [this, &database, id = asked.id](Result<VerifyReport> report) {
          if (!report) {
            log::Warn("a verification of the ledger was aborted",
                      {{"verification", id.ToHex()}, {"error", report.error().ToString()}});
          }
          const VerifyReport found = report ? *report : VerifyReport{.stopped = true};
          auto ended = EndVerification(database, id, StateOf(found), found, ledger_.NowUs());
          if (!ended.ok()) {
            log::Warn("the end of a verification of the ledger could not be stored",
                      {{"verification", id.ToHex()}, {"error", ended.error().message}});
          }
        });
  }

  LedgerService& ledger_;
  VerifyRunner runner_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeVerificationAdmin(LedgerService& ledger) {
  return std::make_unique<VerificationRpc>(ledger);
}

}  // namespace tollgate::billing
