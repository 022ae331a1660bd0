#include "tests/support/sim_service.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "tests/support/sim_text.h"
#include "tests/support/sim_tokenizer.h"

namespace tollgate::test {
namespace {

// Above this much unsent data the generation pauses, so that backpressure reaches the engine.
constexpr size_t kMaxUnsent = 64 << 10;
constexpr char kServer[] = "server: tollgate-engine-sim (simulator)\r\n";

const char* ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 429:
      return "Too Many Requests";
    case 500:
      return "Internal Server Error";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Simulated";
  }
}

std::string StreamHead(const SimScript& script) {
  const std::string type =
      script.raw_type.empty() ? "text/event-stream; charset=utf-8" : script.raw_type;
  return "HTTP/1.1 200 OK\r\ncontent-type: " + type + "\r\n" + kServer +
         "transfer-encoding: chunked\r\n\r\n";
}

void AppendChunk(std::string& out, const std::string& data) {
  char size[24];
  const int length = std::snprintf(size, sizeof size, "%zx\r\n", data.size());
  out.append(size, static_cast<size_t>(length));
  out += data;
  out += "\r\n";
}

}  // namespace

// A running generation on a connection.
struct SimService::Answer : SimAnswer {
  SimPlan plan;
  std::shared_ptr<SimRecord> record;
  std::optional<SimRenderer> renderer;
  std::vector<SimCursor> cursors;
  int64_t step = 0;  // emitted tokens of the longest choice
  int64_t steps = 0;
  int64_t tokens = 0;
  int64_t reasoning_tokens = 0;
  int64_t next_us = 0;  // when the next token is due
  int64_t token_us = 0;
  bool begun = false;
  bool hanging = false;
  bool role_sent = false;
  bool ended = false;
  std::string events;  // to be framed as one chunk
};

SimRequest SimRecord::Snapshot() const {
  SimRequest request = fixed;
  request.status = status.load();
  request.running = running.load();
  request.finished = finished.load();
  request.aborted = aborted.load();
  request.cut = cut.load();
  request.tokens_generated = tokens.load();
  request.first_token_us = first_token_us.load();
  request.ended_us = ended_us.load();
  return request;
}

SimService::SimService(EngineSimOptions options)
    : options_(std::move(options)),
      answer_prefix_(std::to_string(MixHash(static_cast<uint64_t>(SimNowUs()), options_.seed) %
                                    1'000'000'000)) {}

void SimService::OnRequest(SimConnection& connection, SimHttpRequest request) {
  const std::string& path = request.path;
  if (!options_.api_key.empty() && path.rfind("/v1/", 0) == 0 &&
      request.Header("authorization") != "Bearer " + options_.api_key) {
    return Respond(connection, 401, R"({"error":"Unauthorized"})");
  }
  if (request.method == "POST" && path == "/v1/chat/completions") {
    return Generate(connection, std::move(request), SimKind::kChat);
  }
  if (request.method == "POST" && path == "/v1/completions") {
    return Generate(connection, std::move(request), SimKind::kCompletion);
  }
  if (request.method == "POST" && path == "/v1/embeddings") {
    return Generate(connection, std::move(request), SimKind::kEmbedding);
  }
  if (request.method == "POST" && Tokenize(connection, request)) return;
  if (path == "/health" || path == "/ping") return Health(connection);
  if (path == "/v1/models") return Respond(connection, 200, Models());
  if (path == "/metrics") return Respond(connection, 200, Metrics(), "text/plain; version=0.0.4");
  for (const std::string list : {"/sim/requests", "/sim/bodies"}) {
    // The list of all requests, or below it of those with a tag.
    if (path.rfind(list, 0) != 0) continue;
    const std::string tag = path.size() > list.size() ? path.substr(list.size() + 1) : "";
    return Respond(connection, 200, RequestList(list == "/sim/bodies", tag));
  }
  if (path == "/sim/forget") {
    Forget();
    return Respond(connection, 200, "{}");
  }
  if (path == "/sim/script" && request.method == "POST") {
    SetDefaultScript(request.body);
    return Respond(connection, 200, "{}");
  }
  if (path == "/sim/faults" && request.method == "POST") {
    SetFaults(request.body);
    return Respond(connection, 200, "{}");
  }
  if (path == "/sim/queue" && request.method == "POST") {
    const std::string left = std::to_string(SetQueue(request.body));
    return Respond(connection, 200, R"({"left":)" + left + "}");
  }
  Respond(connection, 404, R"({"detail":"Not Found"})");
}

void SimService::Generate(SimConnection& connection, SimHttpRequest request, SimKind kind) {
  auto record = std::make_shared<SimRecord>();
  record->fixed.number = next_number_++;
  record->fixed.path = request.path;
  record->fixed.received_us = SimNowUs();
  const std::optional<Json> body = Json::Parse(request.body);
  auto answer = std::make_unique<Answer>();
  std::optional<SimError> error;
  {
    std::lock_guard lock(mutex_);
    std::optional<Json> queued;
    if (kind == SimKind::kChat && body && (*body)["tools"].size() > 0 && !queue_.empty()) {
      queued = std::move(queue_.front());
      queue_.pop_front();
    }
    const Json& script = queued ? *queued : default_script_;
    answer->plan.mark = options_.name + "." + std::to_string(record->fixed.number);
    error = body ? MakePlan(*body, kind, options_, script, answer->plan, &refused_, faults_.Next())
                 : SimError{400, "BadRequestError", "the body is not JSON", ""};
    record->fixed.stream = answer->plan.stream;
    record->fixed.prompt_tokens = answer->plan.prompt_tokens;
    record->fixed.tag = answer->plan.script.tag;
    if (options_.keep_requests) {
      record->fixed.body = std::move(request.body);
      record->fixed.headers = std::move(request.headers);
      records_.push_back(record);
    }
  }
  requests_.fetch_add(1);
  if (!options_.journal.empty()) {
    WriteToJournal(options_.journal, options_.name, record->fixed, answer->plan);
  }
  if (!error && options_.max_running > 0 && running_.load() >= options_.max_running) {
    error = SimError{429, "TooManyRequestsError", "The engine is at capacity.", ""};
  }
  if (error) {
    record->status = error->status;
    return RespondError(connection, *error);
  }
  record->running = true;
  running_.fetch_add(1);
  prompt_tokens_.fetch_add(answer->plan.prompt_tokens);
  Answer& it = *answer;
  it.record = std::move(record);
  it.steps = it.plan.steps();
  it.token_us = static_cast<int64_t>(it.plan.script.token_ms * 1000);
  for (const SimChoice& choice : it.plan.choices) it.cursors.emplace_back(&choice);
  const std::string id = (kind == SimKind::kChat ? "chatcmpl-" : "cmpl-") + answer_prefix_ +
                         std::to_string(it.record->fixed.number);
  it.renderer.emplace(&it.plan, id, static_cast<int64_t>(std::time(nullptr)),
                      options_.usage_details);
  connection.answer = std::move(answer);
  Begin(connection, it);
}

void SimService::Begin(SimConnection& connection, Answer& answer) {
  const SimScript& script = answer.plan.script;
  answer.next_us = SimNowUs() + script.delay_ms * 1000;
  const bool plain = script.status != 0 || script.cut_before_headers || !answer.plan.stream;
  if (!plain && !script.late_headers && script.delay_ms > 0) {
    // Engines send the head before the first token.
    answer.begun = true;
    connection.out += StreamHead(script);
    answer.record->status = 200;
    if (!loop_->Flush(connection)) return;
  }
  if (!answer.plan.stream)
    answer.next_us += answer.token_us * std::max<int64_t>(answer.steps - 1, 0);
  if (script.delay_ms > 0 || answer.next_us > SimNowUs())
    return loop_->ScheduleAt(connection, answer.next_us);
  Continue(connection, answer);
}

void SimService::OnDue(SimConnection& connection) {
  if (connection.answer && !connection.blocked)
    Continue(connection, static_cast<Answer&>(*connection.answer));
}

void SimService::OnDrained(SimConnection& connection) {
  Answer& answer = static_cast<Answer&>(*connection.answer);
  if (answer.ended) return;
  answer.next_us = std::max(answer.next_us, SimNowUs());
  Continue(connection, answer);
}

void SimService::Continue(SimConnection& connection, Answer& answer) {
  const SimScript& script = answer.plan.script;
  if (answer.hanging || answer.ended || connection.blocked) return;
  if (script.cut_before_headers) {
    answer.record->cut = true;
    return loop_->Close(connection, true);
  }
  if (script.raw_response && script.raw_after < 0) return SendRawResponse(connection, answer);
  if (script.status != 0) {
    answer.record->status = script.status;
    const std::string body = answer.plan.Filled(script.error_body.value_or(RenderError(
        {script.status, "InternalServerError", "scripted failure", ""}, answer.plan.flat_errors)));
    const auto headers = script.headers;
    const int status = script.status;
    answer.record->cut = true;
    Ended(answer);
    connection.answer.reset();  // frees the script too
    const bool page = body.starts_with("<");
    return Respond(connection, status, body, page ? "text/html" : "application/json", headers);
  }
  if (!answer.plan.stream) {
    if (script.cut_after >= 0 || script.hang_after >= 0 || script.raw_after >= 0) {
      while (answer.step < std::min(script.cut_after, answer.steps)) Step(answer);
      if (!answer.plan.body.empty()) {
        if (!SendHalf(connection, answer.plan.body)) return;
      } else if (script.cut_after >= 0 || script.raw_after >= 0) {
        const std::string whole = answer.renderer->Whole(answer.tokens, answer.reasoning_tokens);
        if (!SendHalf(connection, whole)) return;
      }
      Fault(connection, answer);
      return;
    }
    while (answer.step < answer.steps) Step(answer);
    const std::string body = answer.plan.body.empty()
                                 ? answer.renderer->Whole(answer.tokens, answer.reasoning_tokens)
                                 : answer.plan.body;
    answer.record->status = 200;
    answer.record->finished = true;
    finished_.fetch_add(1);
    Ended(answer);
    const std::string behind = answer.plan.Filled(script.behind);
    connection.answer.reset();
    return Respond(connection, 200, body, "application/json", {}, behind);
  }
  if (!answer.begun) {
    answer.begun = true;
    answer.record->status = 200;
    connection.out += StreamHead(script);
  }
  if (!script.raw_chunks.empty()) return SendRaw(connection, answer);
  SendEvents(connection, answer);
}

// Sends the head and the first half of an unstreamed answer.
bool SimService::SendHalf(SimConnection& connection, const std::string& body) {
  connection.out += std::string("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n") + kServer +
                    "content-length: " + std::to_string(body.size()) + "\r\n\r\n" +
                    body.substr(0, body.size() / 2);
  return loop_->Flush(connection);
}

void SimService::SendRawResponse(SimConnection& connection, Answer& answer) {
  const SimScript& script = answer.plan.script;
  const std::string end = script.raw_end;
  answer.record->cut = true;
  connection.out += answer.plan.Filled(*script.raw_response);
  if (end == "hang") {
    answer.hanging = true;
    loop_->Flush(connection);
    return;
  }
  if (end == "reset") {
    if (loop_->Flush(connection)) loop_->Close(connection, true);
    return;
  }
  Ended(answer);
  if (end != "keep") connection.close_when_sent = true;
  loop_->EndAnswer(connection);
}

// Everything due is sent in one write.
void SimService::SendEvents(SimConnection& connection, Answer& answer) {
  const int64_t now = SimNowUs();
  while (true) {
    answer.events.clear();
    if (!answer.role_sent) {
      answer.role_sent = true;
      answer.record->first_token_us = now;
      for (size_t i = 0; i < answer.cursors.size(); ++i)
        answer.renderer->Role(answer.events, static_cast<int>(i));
    }
    bool faulted = false;
    while (answer.step < answer.steps && answer.next_us <= now &&
           answer.events.size() < kMaxUnsent) {
      if (answer.step == answer.plan.script.cut_after ||
          answer.step == answer.plan.script.hang_after ||
          answer.step == answer.plan.script.error_after ||
          answer.step == answer.plan.script.raw_after) {
        faulted = true;
        break;
      }
      Step(answer);
      answer.next_us += answer.token_us;
    }
    if (!answer.events.empty()) AppendChunk(connection.out, answer.events);
    if (answer.step == answer.steps && !faulted) return FinishStream(connection, answer);
    if (!loop_->Flush(connection)) return;
    if (faulted) {
      Fault(connection, answer);
      return;
    }
    if (connection.blocked) return;
    if (answer.next_us > now) return loop_->ScheduleAt(connection, answer.next_us);
  }
}

void SimService::Step(Answer& answer) {
  int64_t emitted = 0;
  for (size_t i = 0; i < answer.cursors.size(); ++i) {
    SimCursor& cursor = answer.cursors[i];
    if (cursor.at_end()) continue;
    ++emitted;
    ++answer.tokens;
    if (cursor.segment().kind == SimSegment::Kind::kReasoning) ++answer.reasoning_tokens;
    if (answer.plan.stream) answer.renderer->Token(answer.events, static_cast<int>(i), cursor);
    cursor.Advance();
    if (cursor.at_end() && answer.plan.stream) {
      answer.renderer->Finish(answer.events, static_cast<int>(i), cursor);
    }
  }
  ++answer.step;
  answer.record->tokens.store(answer.tokens, std::memory_order_relaxed);
  tokens_.fetch_add(emitted, std::memory_order_relaxed);
}

bool SimService::Fault(SimConnection& connection, Answer& answer) {
  const SimScript& script = answer.plan.script;
  if (answer.plan.stream && answer.step == script.error_after) {
    FinishStream(connection, answer);
    return true;
  }
  if (script.raw_after >= 0) {
    SendRawResponse(connection, answer);
    return true;
  }
  if (script.hang_after >= 0 && (!answer.plan.stream || answer.step == script.hang_after)) {
    answer.hanging = true;  // until the client disconnects
    return true;
  }
  answer.record->cut = true;
  loop_->Close(connection, script.cut_reset);
  return true;
}

void SimService::FinishStream(SimConnection& connection, Answer& answer) {
  const SimScript& script = answer.plan.script;
  answer.events.clear();
  if (!script.error_event.empty()) {
    answer.renderer->ErrorEvent(answer.events);
    answer.record->cut = true;
  } else if (script.cut_after == answer.steps || script.hang_after == answer.steps) {
    // Only the end is left to send.
    if (loop_->Flush(connection)) Fault(connection, answer);
    return;
  } else {
    answer.renderer->FinalUsage(answer.events, answer.tokens, answer.reasoning_tokens);
    answer.record->finished = true;
    finished_.fetch_add(1);
  }
  if (!script.no_done) answer.events += "data: [DONE]\n\n";
  if (!answer.events.empty()) AppendChunk(connection.out, answer.events);
  connection.out += "0\r\n\r\n" + answer.plan.Filled(script.behind);
  Ended(answer);
  loop_->EndAnswer(connection);
}

void SimService::SendRaw(SimConnection& connection, Answer& answer) {
  const std::vector<std::string>& chunks = answer.plan.script.raw_chunks;
  const int64_t repeats = answer.plan.script.repeat_last;
  const auto listed = static_cast<int64_t>(chunks.size());
  answer.steps = repeats < 0 ? INT64_MAX : listed + repeats;
  if (answer.step == 0) answer.record->first_token_us = SimNowUs();
  while (answer.step < answer.steps && answer.next_us <= SimNowUs() &&
         connection.out.size() < kMaxUnsent) {
    if (answer.step == answer.plan.script.cut_after ||
        answer.step == answer.plan.script.hang_after) {
      if (loop_->Flush(connection)) Fault(connection, answer);
      return;
    }
    const std::string& chunk = chunks[static_cast<size_t>(std::min(answer.step, listed - 1))];
    AppendChunk(connection.out, answer.plan.Filled(chunk));
    ++answer.step;
    answer.next_us += answer.token_us;
  }
  if (answer.step < answer.steps) {
    if (loop_->Flush(connection) && !connection.blocked) {
      loop_->ScheduleAt(connection, answer.next_us);
    }
    return;
  }
  answer.record->finished = true;
  finished_.fetch_add(1);
  connection.out += "0\r\n\r\n";
  Ended(answer);
  loop_->EndAnswer(connection);
}

void SimService::Ended(Answer& answer) {
  if (answer.ended) return;
  answer.ended = true;
  answer.record->ended_us = SimNowUs();
  answer.record->running = false;
  running_.fetch_sub(1);
}

void SimService::OnGone(SimConnection& connection) {
  if (!connection.answer) return;
  Answer& answer = static_cast<Answer&>(*connection.answer);
  if (!answer.ended && !answer.record->cut) {
    answer.record->aborted = true;
    aborted_.fetch_add(1);
  }
  Ended(answer);
}

void SimService::Respond(SimConnection& connection, int status, const std::string& body,
                         const char* type,
                         const std::vector<std::pair<std::string, std::string>>& headers,
                         const std::string& behind) {
  std::string head =
      "HTTP/1.1 " + std::to_string(status) + " " + ReasonOf(status) + "\r\n" + kServer;
  if (!body.empty()) head += std::string("content-type: ") + type + "\r\n";
  for (const auto& header : headers) head += header.first + ": " + header.second + "\r\n";
  connection.out +=
      head + "content-length: " + std::to_string(body.size()) + "\r\n\r\n" + body + behind;
  loop_->EndAnswer(connection);
}

void SimService::RespondError(SimConnection& connection, const SimError& error) {
  Respond(connection, error.status, RenderError(error, options_.flat_errors));
}

// Sends a space now and then, for ever.
void SimService::Drip(SimConnection& connection, int64_t every_ms) {
  auto answer = std::make_unique<Answer>();
  SimScript& script = answer->plan.script;
  answer->plan.stream = true;
  script.raw_chunks = {" "};
  script.repeat_last = -1;
  script.raw_type = "application/json";
  answer->token_us = every_ms * 1000;
  answer->record = std::make_shared<SimRecord>();
  running_.fetch_add(1);
  Answer& it = *answer;
  connection.answer = std::move(answer);
  Begin(connection, it);
}

void SimService::Health(SimConnection& connection) {
  int64_t drip_ms = 0, status = 0;
  {
    std::lock_guard lock(mutex_);
    drip_ms = default_script_["health_drip_ms"].integer(0);
    status = default_script_["health_status"].integer(0);
  }
  if (drip_ms > 0) return Drip(connection, drip_ms);
  if (status > 0) return Respond(connection, static_cast<int>(status), "");
  Respond(connection, healthy_.load() ? 200 : 503, "");
}

bool SimService::Tokenize(SimConnection& connection, const SimHttpRequest& request) {
  const Json body = Json::Parse(request.body).value_or(Json());
  const std::optional<SimTokenizerAnswer> answer = AnswerTokenizer(options_, request.path, body);
  if (!answer) return false;
  tokenizer_requests_.fetch_add(1);
  int64_t status = 0, drip_ms = 0;
  std::string text;
  {
    std::lock_guard lock(mutex_);
    status = default_script_["tokenizer_status"].integer(0);
    text = default_script_["tokenizer_body"].str();
    drip_ms = default_script_["tokenizer_drip_ms"].integer(0);
  }
  if (drip_ms > 0) {
    Drip(connection, drip_ms);
  } else if (!text.empty()) {
    Respond(connection, 200, text);
  } else if (status != 0) {
    Respond(connection, static_cast<int>(status), R"({"error":{"message":"scripted failure"}})");
  } else {
    Respond(connection, answer->status, answer->body);
  }
  return true;
}

}  // namespace tollgate::test
