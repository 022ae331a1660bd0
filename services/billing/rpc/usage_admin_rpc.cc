#include <algorithm>
#include <map>

#include "common/base/time_units.h"
#include "common/base/try.h"
#include "services/billing/reports/receipts.h"
#include "services/billing/reports/usage_query.h"
#include "services/billing/rpc/admin_calls.h"
#include "services/billing/rpc/usage_intervals.h"
#include "services/billing/storage/schema.h"
#include "tollgate/admin/v1/usage.grpc.pb.h"

namespace tollgate::billing {
namespace {

namespace pb = tollgate::admin::v1;

using admin::AdminResult;
using admin::Caller;
using admin::FormatUsd;
using admin::Parts;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

constexpr int64_t kMaxDays = 366;
constexpr size_t kDefaultTop = 5;
constexpr size_t kMaxTop = 100;

void Fill(const Usage& usage, pb::TokenCounts& into) {
  into.set_prompt_tokens(usage.prompt);
  into.set_cached_tokens(usage.cached);
  into.set_cache_write_tokens(usage.cache_write);
  into.set_completion_tokens(usage.completion);
  into.set_reasoning_tokens(usage.reasoning);
}

void Fill(const Hold& hold, pb::Receipt& into) {
  into.set_name("workspaces/" + hold.workspace + "/requests/" + hold.id.ToHex());
  into.set_client_request_id(hold.client_request_id.empty() ? "req_" + hold.id.ToBase62()
                                                            : hold.client_request_id);
  into.set_key(hold.key_id);
  into.set_model(hold.model);
  into.set_surface(std::string(SurfaceName(hold.surface)));
  into.set_streamed(hold.streamed);
  into.set_engine(hold.engine);
  into.set_state(std::string(HoldStateName(hold.state)));
  into.set_outcome(std::string(OutcomeName(hold.outcome)));
  into.set_cut_by_credit(hold.cut_by_credit);
  into.set_estimated(hold.estimated);
  Fill(hold.BillableUsage(), *into.mutable_tokens());
  into.set_price_version(hold.price_version);
  into.set_input_usd_per_million(PicoPerTokenToUsdPerMillion(hold.rates.input_pico_usd));
  into.set_output_usd_per_million(PicoPerTokenToUsdPerMillion(hold.rates.output_pico_usd));
  into.set_exact_cost_usd(PicoToDecimalUsd(hold.CostPicoUsd()));
  into.set_charged_usd(FormatUsd(hold.charged_nano_usd));
  into.set_charged_granted_usd(FormatUsd(hold.charged_granted_nano_usd));
  into.set_overrun_usd(FormatUsd(hold.overrun_nano_usd));
  into.set_first_hold_usd(FormatUsd(hold.first_authorized_nano_usd));
  into.set_hold_usd(FormatUsd(hold.authorized_nano_usd));
  SetTime(hold.created_us, *into.mutable_create_time());
  if (hold.closed_us > 0) SetTime(hold.closed_us, *into.mutable_close_time());
  into.set_first_token_us(hold.first_token_us);
  into.set_matches(1);
}

void Fill(const ReceiptRecord& record, pb::Receipt& into) {
  Fill(record.hold, into);
  into.set_matches(record.matches);
  for (const Entry& entry : record.entries) {
    pb::ReceiptEntry& row = *into.add_entries();
    row.set_transaction("workspaces/" + entry.workspace + "/transactions/" +
                        std::to_string(entry.sequence));
    row.set_kind(std::string(EntryKindName(entry.kind)));
    row.set_amount_usd(FormatUsd(entry.amount_nano_usd));
    row.set_debit_account(std::string(AccountName(entry.debit)));
    row.set_credit_account(std::string(AccountName(entry.credit)));
    SetTime(entry.at_us, *row.mutable_create_time());
    row.set_memo(entry.memo);
  }
}

int64_t ToUs(const google::protobuf::Timestamp& time) {
  return time.seconds() * 1'000'000 + time.nanos() / 1000;
}

Interval ToInterval(pb::UsageInterval interval, int64_t length_us) {
  switch (interval) {
    case pb::USAGE_INTERVAL_QUARTER_HOUR:
      return Interval::kQuarterHour;
    case pb::USAGE_INTERVAL_HOUR:
      return Interval::kHour;
    case pb::USAGE_INTERVAL_DAY:
      return Interval::kDay;
    case pb::USAGE_INTERVAL_NONE:
      return Interval::kNone;
    default:
      return length_us <= 7 * kDayUs ? Interval::kHour : Interval::kDay;
  }
}

// A validated request for a report.
struct Report {
  UsageQuery query;
  size_t top = kDefaultTop;
  pb::UsageInterval interval = pb::USAGE_INTERVAL_UNSPECIFIED;
};

AdminResult<void> ReadPeriod(const pb::QueryUsageRequest& request, int64_t now_us, Report& report) {
  // End of the current quarter of an hour: nothing is later than now, and roll-ups exist for it.
  const int64_t end_us =
      request.has_end_time() ? ToUs(request.end_time()) : (now_us / kQuarterUs + 1) * kQuarterUs;
  const int64_t start_us =
      request.has_start_time() ? ToUs(request.start_time()) : end_us - 7 * kDayUs;
  // Far below the overflow of microseconds.
  if (start_us < 0 || end_us > int64_t{1} << 56) {
    return admin::InvalidField("start_time", "the period must be after 1970 and before 4200");
  }
  if (start_us >= end_us) {
    return admin::InvalidField("start_time", "start_time must be before end_time");
  }
  if (end_us - start_us > kMaxDays * kDayUs) {
    return admin::InvalidField("start_time", "a report covers at most 366 days");
  }
  if (!pb::UsageInterval_IsValid(request.interval())) {
    return admin::InvalidField("interval", "there is no such interval");
  }
  const Interval interval = ToInterval(request.interval(), end_us - start_us);
  TRY(auto bounds, IntervalBounds(start_us, end_us, interval, request.time_zone()));
  report.query.bounds_us = std::move(bounds);
  report.query.whole_days =
      interval == Interval::kNone || (interval == Interval::kDay && IsUtc(request.time_zone()));
  report.interval = interval == Interval::kQuarterHour ? pb::USAGE_INTERVAL_QUARTER_HOUR
                    : interval == Interval::kHour      ? pb::USAGE_INTERVAL_HOUR
                    : interval == Interval::kDay       ? pb::USAGE_INTERVAL_DAY
                                                       : pb::USAGE_INTERVAL_NONE;
  return {};
}

AdminResult<Report> ReportOf(const pb::QueryUsageRequest& request, const std::string& workspace,
                             int64_t now_us) {
  Report report;
  report.query.workspace = workspace;
  TRY(ReadPeriod(request, now_us, report));
  for (const int group : request.group_by()) {
    if (group == pb::USAGE_GROUP_MODEL) {
      report.query.by_model = true;
    } else if (group == pb::USAGE_GROUP_KEY) {
      report.query.by_key = true;
    } else {
      return admin::InvalidField("group_by", "usage is grouped by MODEL and KEY");
    }
  }
  if (request.top() < 0 || request.top() > static_cast<int32_t>(kMaxTop)) {
    return admin::InvalidField("top", "top is 1 to 100, or 0 for 5");
  }
  if (request.top() > 0) report.top = request.top();
  if (report.query.by_key) report.query.top = report.top;
  static constexpr std::string_view kTexts[] = {"key", "model"};
  TRY(auto terms, admin::ParseFilter(request.filter(), kTexts));
  for (const admin::FilterTerm& term : terms) {
    (term.field == "key" ? report.query.key_id : report.query.model) = term.value;
  }
  return report;
}

using Group = std::pair<std::string, std::string>;  // model, key

// Returns the groups with the highest cost.
std::map<Group, int64_t> TopGroups(const std::vector<UsageSum>& rows, size_t top) {
  std::map<Group, int64_t> cost;
  for (const UsageSum& row : rows) {
    if (!row.other) cost[{row.model, row.key_id}] += row.sums.charged_nano_usd;
  }
  std::vector<std::pair<int64_t, Group>> order;
  for (const auto& [group, nano_usd] : cost) order.emplace_back(-nano_usd, group);
  std::sort(order.begin(), order.end());
  std::map<Group, int64_t> kept;
  for (size_t i = 0; i < std::min(top, order.size()); ++i) {
    kept[order[i].second] = -order[i].first;
  }
  return kept;
}

void Fill(const UsageChange& sums, pb::UsageRow& into) {
  into.set_requests(sums.requests);
  into.set_free_requests(sums.free_requests);
  Fill(sums.usage, *into.mutable_tokens());
  into.set_cost_usd(FormatUsd(sums.charged_nano_usd));
}

void Fill(const Report& report, const std::vector<UsageSum>& sums, pb::QueryUsageResponse& into) {
  struct Key {
    size_t interval;
    bool other;
    int64_t rank;  // rank of the group, highest cost first
    Group group;
    auto operator<=>(const Key&) const = default;
  };
  const std::map<Group, int64_t> top = TopGroups(sums, report.top);
  std::map<Key, UsageChange> rows;
  UsageChange totals;
  for (const UsageSum& sum : sums) {
    totals += sum.sums;
    const auto kept = sum.other ? top.end() : top.find({sum.model, sum.key_id});
    const Key key = kept == top.end() ? Key{sum.interval, true, 0, {}}
                                      : Key{sum.interval, false, -kept->second, kept->first};
    rows[key] += sum.sums;
  }
  for (const auto& [key, sum] : rows) {
    pb::UsageRow& row = *into.add_rows();
    SetTime(report.query.bounds_us[key.interval], *row.mutable_start_time());
    row.set_model(key.group.first);
    row.set_key(key.group.second);
    row.set_other(key.other);
    Fill(sum, row);
  }
  Fill(totals, *into.mutable_totals());
  into.set_interval(report.interval);
  SetTime(report.query.bounds_us.front(), *into.mutable_start_time());
  SetTime(report.query.bounds_us.back(), *into.mutable_end_time());
}

// Returns the workspace, or kAnyWorkspace, and the name of the request.
AdminResult<Parts> ReceiptName(const pb::GetRequestRequest& request) {
  if (auto parts = admin::MatchName("workspaces/-/requests/*", request.name())) {
    return Parts{std::string(kAnyWorkspace), parts->front()};
  }
  return admin::NameParts(request);
}

AdminResult<RequestQuery> RequestQueryOf(const pb::ListRequestsRequest& request,
                                         const std::string& workspace,
                                         const admin::ListPage& page) {
  RequestQuery query;
  query.workspace = workspace;
  query.limit = page.size;
  if (!page.position.empty()) {
    const auto after = Id::FromHex(page.position);
    if (!after) return admin::InvalidPageToken();
    query.after = *after;
  }
  static constexpr std::string_view kTexts[] = {"key", "model", "outcome", "client_request_id"};
  static constexpr std::string_view kTimes[] = {"create_time"};
  TRY(auto terms, admin::ParseFilter(request.filter(), kTexts, kTimes));
  for (const admin::FilterTerm& term : terms) {
    if (term.field == "key") {
      query.key_id = term.value;
    } else if (term.field == "model") {
      query.model = term.value;
    } else if (term.field == "client_request_id") {
      query.client_request_id = term.value;
    } else if (term.field == "outcome") {
      query.outcome = OutcomeNamed(term.value);
      if (!query.outcome) {
        return admin::InvalidField("filter", "there is no outcome \"" + term.value + "\"");
      }
    } else {
      TRY(auto us, admin::FilterTime(term));
      (term.op == admin::FilterTerm::Op::kAtLeast ? query.start_us : query.end_us) = us;
    }
  }
  return query;
}

class UsageAdminRpc : public pb::UsageService::CallbackService {
 public:
  explicit UsageAdminRpc(LedgerService& ledger) : ledger_(ledger) {}

  ServerUnaryReactor* QueryUsage(CallbackServerContext* context,
                                 const pb::QueryUsageRequest* request,
                                 pb::QueryUsageResponse* response) override {
    return admin::Handle(
        context, request, response, OnReports{ledger_},
        [=, this](sql::Database& database, const Caller&, const Parts& name) -> AdminResult<void> {
          TRY(auto report, ReportOf(*request, name[0], ledger_.NowUs()));
          auto sums = billing::QueryUsage(database, report.query);
          if (!sums.ok()) return SqlFailure(sums);
          Fill(report, *sums, *response);
          return {};
        });
  }

  ServerUnaryReactor* GetRequest(CallbackServerContext* context,
                                 const pb::GetRequestRequest* request,
                                 pb::Receipt* response) override {
    return admin::Handle(
        context, request, response, OnLedger{ledger_},
        [=](sql::Database& database, const Caller&) -> AdminResult<void> {
          TRY(auto name, ReceiptName(*request));
          const std::string& workspace = name.front();
          auto found = ReadReceipt(database, workspace, name.back());
          if (!found.ok()) return SqlFailure(found);
          if (!*found) {
            return admin::NotFound("there is no request " + name.back() +
                                   (workspace == kAnyWorkspace ? " in any workspace"
                                                               : " in the workspace " + workspace));
          }
          Fill(**found, *response);
          return {};
        });
  }

  ServerUnaryReactor* ListRequests(CallbackServerContext* context,
                                   const pb::ListRequestsRequest* request,
                                   pb::ListRequestsResponse* response) override {
    return admin::Handle(
        context, request, response, OnReports{ledger_},
        [=](sql::Database& database, const Caller& caller, const Parts& name) -> AdminResult<void> {
          TRY(auto page, admin::PageOfList(*request, caller));
          TRY(auto query, RequestQueryOf(*request, name[0], page));
          auto rows = ReadRequests(database, query);
          if (!rows.ok()) return SqlFailure(rows);
          admin::FillPage(
              page, *rows, *response,
              [&](const Hold& hold) { Fill(hold, *response->add_receipts()); },
              [](const Hold& last) { return last.id.ToHex(); });
          return {};
        });
  }

 private:
  LedgerService& ledger_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeUsageAdmin(LedgerService& ledger) {
  return std::make_unique<UsageAdminRpc>(ledger);
}

}  // namespace tollgate::billing
