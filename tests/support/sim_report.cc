// The simulated engine's reports: counts, metrics, the list of received requests.
#include "tests/support/sim_service.h"

namespace tollgate::test {

std::vector<SimRequest> SimService::Requests() const {
  std::lock_guard lock(mutex_);
  std::vector<SimRequest> requests;
  requests.reserve(records_.size());
  for (const auto& record : records_) requests.push_back(record->Snapshot());
  return requests;
}

SimTotals SimService::Totals() const {
  SimTotals totals;
  totals.requests = requests_.load();
  totals.tokenizer_requests = tokenizer_requests_.load();
  totals.running = running_.load();
  totals.finished = finished_.load();
  totals.aborted = aborted_.load();
  totals.prompt_tokens = prompt_tokens_.load();
  totals.tokens_generated = tokens_.load();
  totals.connections = loop_ ? loop_->connections() : 0;
  return totals;
}

void SimService::Forget() {
  std::lock_guard lock(mutex_);
  records_.clear();
}

void SimService::SetDefaultScript(const std::string& json_object) {
  std::lock_guard lock(mutex_);
  default_script_ = Json::Parse(json_object).value_or(Json());
}

void SimService::SetFaults(const std::string& json_object) {
  std::lock_guard lock(mutex_);
  faults_.Set(Json::Parse(json_object).value_or(Json()));
}

size_t SimService::SetQueue(const std::string& json_list) {
  std::lock_guard lock(mutex_);
  const size_t left = queue_.size();
  const Json list = Json::Parse(json_list).value_or(Json());
  queue_.assign(list.elements().begin(), list.elements().end());
  return left;
}

std::string SimService::Models() const {
  std::string list;
  for (const std::string& model : options_.models) {
    if (!list.empty()) list += ',';
    list += "{\"id\":" + JsonQuoted(model) +
            ",\"object\":\"model\",\"created\":1700000000,\"owned_by\":\"simulator\",\"root\":" +
            JsonQuoted(model) +
            ",\"parent\":null,\"max_model_len\":" + std::to_string(options_.context_window) +
            ",\"permission\":[]}";
  }
  return "{\"object\":\"list\",\"data\":[" + list + "]}";
}

std::string SimService::Metrics() const {
  const SimTotals totals = Totals();
  const std::string label =
      "{model_name=\"" + (options_.models.empty() ? "" : options_.models[0]) + "\"} ";
  std::string out = "# A simulator: no model is behind these numbers.\n";
  auto add = [&](const char* name, const char* type, int64_t value) {
    out += std::string("# TYPE ") + name + " " + type + "\n" + name + label +
           std::to_string(value) + ".0\n";
  };
  add("vllm:num_requests_running", "gauge", totals.running);
  add("vllm:num_requests_waiting", "gauge", 0);
  add("vllm:kv_cache_usage_perc", "gauge", 0);
  add("vllm:prompt_tokens_total", "counter", totals.prompt_tokens);
  add("vllm:generation_tokens_total", "counter", totals.tokens_generated);
  add("sim:requests_total", "counter", totals.requests);
  add("sim:aborted_total", "counter", totals.aborted);
  add("sim:finished_total", "counter", totals.finished);
  return out;
}

std::string SimService::RequestList(bool bodies, const std::string& tag) const {
  std::string list;
  for (const SimRequest& request : Requests()) {
    if (!tag.empty() && request.tag != tag) continue;
    if (!list.empty()) list += ',';
    auto flag = [](bool value) { return value ? "true" : "false"; };
    list += "{\"number\":" + std::to_string(request.number) +
            ",\"path\":" + JsonQuoted(request.path) + ",\"tag\":" + JsonQuoted(request.tag) +
            ",\"status\":" + std::to_string(request.status) +
            ",\"running\":" + flag(request.running) + ",\"finished\":" + flag(request.finished) +
            ",\"aborted\":" + flag(request.aborted) + ",\"cut\":" + flag(request.cut) +
            ",\"prompt_tokens\":" + std::to_string(request.prompt_tokens) +
            ",\"tokens_generated\":" + std::to_string(request.tokens_generated) +
            ",\"traceparent\":" + JsonQuoted(request.header("traceparent")) +
            ",\"tracestate\":" + JsonQuoted(request.header("tracestate")) +
            (bodies ? ",\"body\":" + JsonQuoted(request.body) : "") + "}";
  }
  return "{\"requests\":[" + list + "]}";
}

}  // namespace tollgate::test
