#include "services/cli/doctor/engine_probe.h"

#include <set>

#include "common/engines/kinds.h"
#include "common/http/http_call.h"
#include "common/json/json.h"
#include "services/cli/doctor/probe.h"

namespace tollgate::cli {
namespace {

using http::HttpAnswer;
using Outcome = http::HttpAnswer::Outcome;

// Engines are of the kind openai unless the catalog says otherwise.
const engines::Kind& KindOf(const std::string& name) {
  const engines::Kind* kind = engines::Find(name);
  return kind != nullptr ? *kind : engines::Of(catalog::v1::ENGINE_KIND_OPENAI);
}

class Probe {
 public:
  explicit Probe(const EngineToAsk& asked)
      : asked_(asked),
        kind_(KindOf(asked.engine.kind())),
        subject_(asked.engine.id() + " (" + std::string(kind_.name) + ", " +
                 asked.engine.base_url() + ")") {}

  Findings Run() {
    if (!Models()) return findings_;
    Tokenizer();
    if (asked_.generate) {
      for (const auto& model : asked_.models) Generate(model);
    } else {
      findings_.push_back(
          Skipped(subject_,
                  "usage when streaming, time to first token: only with --engines, which "
                  "sends one request of one token for each model"));
    }
    return findings_;
  }

 private:
  HttpAnswer Ask(const std::string& path, const std::string& body = "") {
    http::HttpCall call;
    call.method = body.empty() ? "GET" : "POST";
    call.url = asked_.engine.base_url() + path;
    call.bearer = asked_.engine.api_key();
    call.json = body;
    call.authority_file = asked_.authority_file;
    call.timeout_ms = asked_.timeout_ms / 2;
    call.connect_timeout_ms = asked_.timeout_ms / 4;
    call.use_proxy = false;
    return http::Send(call);
  }

  void Add(Finding finding) { findings_.push_back(std::move(finding)); }

  // Returns false if further requests are pointless.
  bool Models() {
    const HttpAnswer answer = Ask("/v1/models");
    if (answer.outcome != Outcome::kAnswered) {
      Add(Failure(subject_, "cannot be reached: " + answer.error,
                  "start the engine, correct base_url, or open the way to it; for https see "
                  "router.engine_authority_file. Asked from this machine: routers may see it "
                  "otherwise"));
      return false;
    }
    if (answer.status == 401 || answer.status == 403) {
      Add(Failure(subject_,
                  "refuses the API key (" + std::to_string(answer.status) + ")" +
                      (asked_.engine.api_key().empty() ? ": the catalog has none" : ""),
                  "set api_key in the catalog file to what the engine was started with "
                  "(--api-key)"));
      return false;
    }
    if (answer.status != 200) {
      Add(Failure(subject_, "/v1/models says " + std::to_string(answer.status),
                  "wait until it has loaded its model, or see its log"));
      return false;
    }
    const auto document = json::Document::ParseView(answer.body);
    std::set<std::string> served;
    if (document.ok()) {
      for (const json::Value model : document->root().Find("data")) {
        served.insert(model.Find("id").string());
      }
    }
    bool all = true;
    for (const auto& model : asked_.models) {
      if (served.contains(model.name) || served.contains(model.name + ":latest")) continue;
      all = false;
      std::string names;
      for (const std::string& name : served) names += (names.empty() ? "" : ", ") + name;
      Add(Failure(subject_, "does not serve \"" + model.name + "\", but: " + names,
                  "start it with that model, or set engine_model to the name that it has there"));
    }
    if (all) {
      Add(Ok(subject_, "answers, takes the API key, serves " +
                           std::to_string(asked_.models.size()) + " of " +
                           std::to_string(asked_.models.size()) + " models" + Version()));
    }
    return all;
  }

  std::string Version() {
    if (kind_.version.path.empty()) return "";
    const HttpAnswer answer = Ask(std::string(kind_.version.path));
    if (answer.status != 200) return ", version unknown";
    const auto document = json::Document::ParseView(answer.body);
    if (!document.ok()) return ", version unknown";
    const std::string version = document->root().Find(kind_.version.member).string();
    return version.empty() ? ", version unknown" : ", version " + version;
  }

  void Tokenizer() {
    if (!kind_.tokenizer.any()) {
      Add(Skipped(subject_, "has no tokenizer to ask: counts are estimates"));
      return;
    }
    const std::string path(kind_.tokenizer.prompt_path);
    const std::string model =
        asked_.models.empty() ? "" : R"("model":)" + json::Quoted(asked_.models[0].name) + ",";
    const HttpAnswer answer = Ask(path, "{" + model + json::Quoted(kind_.tokenizer.prompt_member) +
                                            R"(:"How many tokens?"})");
    if (answer.outcome == Outcome::kAnswered && answer.status == 200) {
      Add(Ok(subject_, "counts tokens"));
      return;
    }
    const std::string said = answer.outcome == Outcome::kAnswered
                                 ? "says " + std::to_string(answer.status)
                                 : "does not answer: " + answer.error;
    Add(Warning(subject_, "its tokenizer (" + path + ") " + said,
                "start it with its tokenizer endpoints: without them counts of prompts are "
                "estimates, and prompts above context_window are found late"));
  }

  void Generate(const EngineToAsk::Model& model) {
    const std::string subject = subject_ + " " + model.name;
    if (!model.chat && !model.completion) {
      return Add(Skipped(subject, "is for embeddings: it does not stream"));
    }
    const std::string input = model.chat
                                  ? R"("messages":[{"role":"user","content":"Say one word."}])"
                                  : R"("prompt":"One word:")";
    const std::string usage = kind_.usage_on_chunks ? R"(,"continuous_usage_stats":true)" : "";
    const HttpAnswer answer =
        Ask(model.chat ? "/v1/chat/completions" : "/v1/completions",
            R"({"model":)" + json::Quoted(model.name) + "," + input +
                R"(,"max_tokens":1,"stream":true,"stream_options":{"include_usage":true)" + usage +
                "}}");
    if (answer.outcome != Outcome::kAnswered) {
      return Add(Failure(subject, "a request of one token fails: " + answer.error, "see its log"));
    }
    if (answer.status != 200) {
      return Add(Failure(subject,
                         "refuses a request of one token: " + std::to_string(answer.status),
                         "see its log; the engine may need other settings for this model"));
    }
    JudgeStream(subject, answer);
  }

  void JudgeStream(const std::string& subject, const HttpAnswer& answer) {
    int chunks = 0, with_output = 0, with_usage = 0, outputs_with_usage = 0;
    for (size_t at = 0; at < answer.body.size();) {
      const size_t end = std::min(answer.body.find('\n', at), answer.body.size());
      std::string line = answer.body.substr(at, end - at);
      at = end + 1;
      constexpr std::string_view kData = "data:";
      if (!line.starts_with(kData)) continue;
      const auto document = json::Document::Parse(line.substr(kData.size()));
      if (!document.ok()) continue;  // [DONE]
      ++chunks;
      const bool output = document->root().Find("choices").size() > 0;
      const bool usage = document->root().Find("usage").is_object();
      with_output += output ? 1 : 0;
      with_usage += usage ? 1 : 0;
      outputs_with_usage += output && usage ? 1 : 0;
    }
    const std::string first = ", first output after " + Duration(answer.first_byte_us);
    if (chunks == 0 || with_output == 0) {
      return Add(Failure(subject, "streams no output",
                         "the engine does not stream in OpenAI's dialect, or a proxy before it "
                         "changes what it sends"));
    }
    if (with_usage == 0) {
      return Add(Failure(subject, "reports no usage when it streams" + first,
                         "use an engine that knows stream_options.include_usage: without its "
                         "report, Tollgate charges by its own count of the output and an estimate "
                         "of the prompt"));
    }
    if (kind_.usage_on_chunks && outputs_with_usage == 0) {
      return Add(Warning(subject, "reports usage at the end only, not on each chunk" + first,
                         "upgrade the engine (stream_options.continuous_usage_stats): the output "
                         "of answers that are cut off is charged by Tollgate's own count"));
    }
    Add(Ok(subject, (kind_.usage_on_chunks ? "reports usage on each chunk"
                                           : "reports usage at the end of a stream") +
                        first));
  }

  const EngineToAsk& asked_;
  const engines::Kind& kind_;
  const std::string subject_;
  Findings findings_;
};

}  // namespace

Findings AskEngine(const EngineToAsk& asked) { return Probe(asked).Run(); }

}  // namespace tollgate::cli
