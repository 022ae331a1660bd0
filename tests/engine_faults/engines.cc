#include "tests/engine_faults/engines.h"

#include <cstdlib>
#include <sstream>

#include "tests/support/http.h"

namespace tollgate::test {
namespace {

constexpr int64_t kAdminMs = 2'000;

}  // namespace

EngineProcess::EngineProcess(const std::string& name, const std::string& folder)
    : name_(name),
      journal_(folder + "/" + name + ".journal"),
      process_(name,
               {BinaryPath("tollgate-engine-sim"), "--listen", port_.address(), "--name", name,
                "--journal", journal_},
               folder + "/" + name + ".log") {}

bool EngineProcess::Post(const std::string& path, const std::string& body) {
  return Http(port_.number(), "POST", path, {}, body, kAdminMs).status == 200;
}

bool EngineProcess::SetFaults(int64_t percent, int64_t seed, const std::vector<Json>& scripts) {
  Json list = Json::Array();
  for (const Json& script : scripts) list.Add(script);
  Json faults = Json::Object();
  faults.Set("percent", percent).Set("seed", seed).Set("scripts", list);
  return Post("/sim/faults", faults.Dump());
}

bool EngineProcess::SetScript(const std::string& json) { return Post("/sim/script", json); }

int64_t EngineProcess::Running() {
  const HttpResponse answer = Http(port_.number(), "GET", "/metrics", {}, "", kAdminMs);
  const size_t at = answer.body.find("\nvllm:num_requests_running{");
  if (answer.status != 200 || at == std::string::npos) return -1;
  return std::atoll(answer.body.c_str() + answer.body.find("} ", at) + 2);
}

Journals ReadJournals(const std::vector<std::unique_ptr<EngineProcess>>& engines) {
  Journals all;
  for (const auto& engine : engines) {
    std::istringstream file(ReadFile(engine->journal()));
    for (std::string text; std::getline(file, text);) {
      const Json line = Json::Parse(text).value_or(Json());
      Try one;
      one.tag = line["tag"].str();
      one.fault = line["fault"].str();
      one.streamed = line["stream"].boolean();
      one.prompt_tokens = line["prompt_tokens"].integer();
      one.tokens = line["tokens"].integer();
      if (!one.fault.empty()) ++all.faults[one.fault];
      all.by_mark[line["engine"].str() + "." + line["number"].number_text()] = one;
      all.by_tag.emplace(one.tag, one);
    }
  }
  return all;
}

}  // namespace tollgate::test
