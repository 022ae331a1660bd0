#include "gateway/edge/request_log.h"

#include "common/observability/latency_bounds.h"
#include "gateway/edge/request_failure.h"
#include "gateway/edge/request_trace.h"

namespace tollgate::gateway {

namespace {

log::Field FieldIfSet(std::string_view key, std::string_view value) {
  return {value.empty() ? std::string_view() : key, value};
}

}  // namespace

RequestLog::RequestLog(const EndpointTable& table)
    : in_flight_(metrics::Gauge("tollgate_http_requests_in_flight", "Requests being handled now")),
      disconnects_(
          metrics::Counter("tollgate_http_client_disconnects_total",
                           "Requests whose client disconnected before the end of the response")),
      disagreements_(
          metrics::Counter("tollgate_http_parser_disagreements_total",
                           "Requests refused because two parsers understood them differently")) {
  auto add = [this](const std::string& name, log::Level level) {
    metrics::Labels labels{{"endpoint", name}};
    rows_.push_back({name, level,
                     &metrics::Histogram(
                         "tollgate_http_request_duration_seconds",
                         "Time from the last byte of the request to the last byte of the response",
                         metrics::AnswerBounds(), labels),
                     &metrics::Histogram(
                         "tollgate_http_first_byte_seconds",
                         "Time from the last byte of the request to the first byte of the response",
                         metrics::FirstTokenBounds(), labels)});
  };
  for (const Endpoint& row : table.rows()) {
    add(row.name, row.is_probe ? log::Level::kDebug : log::Level::kInfo);
  }
  add("unmatched", log::Level::kInfo);
  for (int i = 0; i < kReasonCount; ++i) {
    const auto reason = static_cast<Reason>(i);
    if (reason == Reason::kNone) continue;
    denials_[i] = &metrics::Counter("tollgate_gateway_denials_total",
                                    "Requests refused, by reason (docs/operations/why-refused.md).",
                                    {{"reason", std::string(NameOf(reason))}});
  }
}

prometheus::Counter& RequestLog::CounterOf(size_t row, int status) {
  std::lock_guard lock(mutex_);
  prometheus::Counter*& counter = counters_[static_cast<int64_t>(row) * 1000 + status];
  if (counter == nullptr) {
    counter =
        &metrics::Counter("tollgate_http_requests_total", "Requests answered",
                          {{"endpoint", rows_[row].name}, {"status", std::to_string(status)}});
  }
  return *counter;
}

void RequestLog::CountDenial(Reason reason) {
  if (reason != Reason::kNone) denials_[static_cast<size_t>(reason)]->Increment();
}

void RequestLog::OnDone(const HttpRequest& request, const http::RequestSummary& summary) {
  bool matched = request.route >= 0 && static_cast<size_t>(request.route) + 1 < rows_.size();
  size_t index = matched ? static_cast<size_t>(request.route) : rows_.size() - 1;
  const Row& row = rows_[index];
  if (!summary.framing_error) in_flight_.Decrement();
  CounterOf(index, summary.status).Increment();
  row.duration->Observe(static_cast<double>(summary.duration_us) * 1e-6);
  if (summary.first_byte_us >= 0) {
    row.first_byte->Observe(static_cast<double>(summary.first_byte_us) * 1e-6);
  }
  if (summary.client_disconnected) disconnects_.Increment();
  if (summary.parsers_disagreed) disagreements_.Increment();
  const RequestFailure& failure = FailureOf(request);
  CountDenial(failure.reason);
  if (!log::Enabled(row.level)) return;
  // Logs the endpoint's name instead of the path: an unmatched path may contain anything, even a
  // key.
  log::Write(row.level, "request",
             {{"x_request_id", request.x_request_id},
              {"endpoint", row.name},
              {"method", matched ? std::string_view(request.method) : "-"},
              {"status", summary.status},
              {"duration_us", summary.duration_us},
              {"first_byte_us", summary.first_byte_us},
              {"bytes_in", static_cast<int64_t>(summary.body_bytes_in)},
              {"bytes_out", static_cast<int64_t>(summary.body_bytes_out)},
              {"client_gone", static_cast<int>(summary.client_disconnected)},
              {"peer", request.peer_address},
              FieldIfSet("code", failure.error != nullptr ? failure.error->code : ""),
              FieldIfSet("reason", NameOf(failure.reason)),
              FieldIfSet("key_id", failure.key_id),
              FieldIfSet("workspace", failure.workspace_id),
              TraceField(request)});
}

}  // namespace tollgate::gateway
