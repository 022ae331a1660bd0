#include "tests/limits/gateways.h"

#include <algorithm>
#include <tuple>

namespace tollgate::test {
namespace {

constexpr int64_t kCredit = 1'000'000'000'000;

// The sum of all series of a counter in the text of /metrics.
int64_t SumOf(const std::string& metrics, const std::string& name) {
  int64_t sum = 0;
  for (size_t at = 0; (at = metrics.find("\n" + name, at)) != std::string::npos; ++at) {
    const char after = metrics[at + 1 + name.size()];
    if (after != ' ' && after != '{') continue;
    const size_t value = metrics.find(' ', metrics.find(after == '{' ? '}' : ' ', at));
    sum += std::atoll(metrics.c_str() + value);
  }
  return sum;
}

// The highest number of concurrent requests in this period, and which requests they were.
std::pair<int64_t, std::string> MostAtOnce(const std::vector<SimRequest>& requests, int64_t from_us,
                                           int64_t until_us) {
  struct Change {
    int64_t at_us;
    int by;
    const SimRequest* request;
  };
  std::vector<Change> changes;
  for (const SimRequest& request : requests) {
    changes.push_back({request.received_us, 1, &request});
    if (!request.running) changes.push_back({request.ended_us, -1, &request});
  }
  // An end counts before a start of the same microsecond.
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::tie(a.at_us, a.by) < std::tie(b.at_us, b.by);
  });
  int64_t now = 0, most = 0, most_us = 0;
  for (const Change& change : changes) {
    if (change.at_us > until_us) break;
    // Includes requests that ran when the period began.
    const int64_t running = change.at_us < from_us ? 0 : std::max(now, now + change.by);
    now += change.by;
    if (running > most) most_us = std::max(change.at_us, from_us);
    most = std::max(most, running);
  }
  std::string which;
  for (const SimRequest& request : requests) {
    if (request.received_us > most_us || (!request.running && request.ended_us <= most_us))
      continue;
    which += request.header("x-request-id") + ": from " +
             std::to_string(request.received_us - most_us) + " to " +
             std::to_string(request.ended_us - most_us) + " us" +
             (request.aborted ? ", aborted" : "") + "\n";
  }
  return {most, which};
}

}  // namespace

Gateways::Gateways(std::vector<std::string> settings) {
  ClusterOptions options;
  options.all_in_one = false;
  options.threads = 1;
  options.gateways = kGateways;
  options.ratelimits = kLimiters;
  options.ratelimit_settings = std::move(settings);
  options.lease_seconds = 9;
  options.log_level = "warn";
  if (engine_.Start()) options.catalog = DefaultCatalog({engine_.base_url()});
  cluster_ = std::make_unique<Cluster>(std::move(options));
}

Gateways::~Gateways() {
  stopped_ = true;
  for (std::thread& caller : callers_) caller.join();
}

std::string Gateways::Start() { return cluster_->Start(60'000); }

void Gateways::KillLimiters() {
  for (const std::string& name : cluster_->process_names()) {
    if (name.starts_with("ratelimit")) cluster_->process(name).Kill();
  }
}

std::string Gateways::RestartLimiters() {
  std::vector<std::string> limiters;
  for (const std::string& name : cluster_->process_names()) {
    if (name.starts_with("ratelimit")) limiters.push_back(name);
  }
  return cluster_->Restart(limiters, 30'000);
}

void Gateways::Call(int number) {
  const std::string body =
      R"({"model":"sim/model","max_tokens":1,"messages":[{"role":"user","content":"hi"}],)"
      R"("x_sim":{"tokens":1,"delay_ms":)" +
      std::to_string(load_.run_ms) + "}}";
  const int port = cluster_->port(1 + number % kGateways);
  // The callers do not start at the same moment.
  SleepMs(load_.pause_ms * number / load_.callers);
  auto connection = std::make_unique<HttpConnection>(port, 20'000);
  while (!stopped_) {
    const HttpResponse answer =
        connection->Request("POST", "/v1/chat/completions", key_.headers(), body);
    if (answer.status == 200 && answer.complete) {
      ++granted_;
    } else if (answer.status == 429) {
      ++refused_[static_cast<size_t>(number % kGateways)];
    } else {
      ++failed_;
      std::lock_guard lock(mutex_);
      failure_ = std::to_string(answer.status) + " " + answer.error + answer.body;
    }
    if (!answer.complete) connection = std::make_unique<HttpConnection>(port, 20'000);
    SleepMs(load_.pause_ms);
  }
}

int64_t Gateways::LocalDecisions() {
  int64_t sum = 0;
  for (const std::string& name : cluster_->process_names()) {
    if (!name.starts_with("gateway") && !name.starts_with("ratelimit")) continue;
    const std::string metrics = Http(cluster_->admin_port(name), "GET", "/metrics").body;
    sum += SumOf(metrics, "tollgate_ratelimit_local_decisions_total") +
           SumOf(metrics, "tollgate_gateway_limiter_fallback_total");
  }
  return sum;
}

void Gateways::StartLoad(const Load& load) {
  load_ = load;
  const std::string workspace = cluster_->NewWorkspace("", load.limits);
  (void)cluster_->AddCredit(workspace, kCredit);
  key_ = cluster_->NewKey(workspace);
  engine_.ForgetRequests();
  stopped_ = false;
  granted_ = failed_ = 0;
  for (std::atomic<int64_t>& refused : refused_) refused = 0;
  local_before_ = LocalDecisions();
  from_us_ = MonotonicUs();
  for (int i = 0; i < load.callers; ++i) callers_.emplace_back([this, i] { Call(i); });
}

Gateways::Count Gateways::Taken() {
  Count count{.granted = granted_, .failed = failed_};
  count.least_refused = refused_[0];
  for (const std::atomic<int64_t>& refused : refused_) {
    count.refused += refused;
    count.least_refused = std::min<int64_t>(count.least_refused, refused);
  }
  count.local = LocalDecisions() - local_before_;
  count.seconds = static_cast<double>(MonotonicUs() - from_us_) / 1e6;
  std::lock_guard lock(mutex_);
  count.failure = failure_;
  return count;
}

Gateways::Count Gateways::StopLoad() {
  stopped_ = true;
  for (std::thread& caller : callers_) caller.join();
  callers_.clear();
  const double seconds = static_cast<double>(MonotonicUs() - from_us_) / 1e6;
  Count count = Taken();
  count.seconds = seconds;
  std::tie(count.most_running, count.running) = MostRunning(0, MonotonicUs());
  return count;
}

std::pair<int64_t, std::string> Gateways::MostRunning(int64_t from_us, int64_t until_us) {
  return MostAtOnce(engine_.requests(), from_us, until_us);
}

}  // namespace tollgate::test
