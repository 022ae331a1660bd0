// Simulated engines as processes, each with a port of its own across restarts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/json.h"
#include "tests/support/port.h"
#include "tests/support/process.h"

namespace tollgate::test {

class EngineProcess {
 public:
  // Keeps its journal and its log in that folder.
  EngineProcess(const std::string& name, const std::string& folder);

  // On a thread that outlives it (Process::Start). Does not wait until it listens.
  bool Start() { return process_.Start(); }
  void Kill() { process_.Kill(); }
  void Signal(int signal) { process_.Signal(signal); }

  // Of percent of its requests each gets one of these scripts (SimFaults). False: no answer.
  bool SetFaults(int64_t percent, int64_t seed, const std::vector<Json>& scripts);
  // The script of requests that say nothing else, and of its health checks.
  bool SetScript(const std::string& json);
  // Requests that it works on; -1: no answer.
  int64_t Running();
  bool Listens() { return Running() >= 0; }

  const std::string& name() const { return name_; }
  std::string url() const { return "http://" + port_.address(); }
  const std::string& journal() const { return journal_; }

 private:
  bool Post(const std::string& path, const std::string& body);

  const std::string name_;
  const std::string journal_;
  TestPort port_;
  Process process_;
};

// One request that an engine took, by its journal.
struct Try {
  std::string tag;
  std::string fault;  // what was drawn for it; empty: none
  bool streamed = false;
  int64_t prompt_tokens = 0;
  int64_t tokens = 0;  // of the whole answer
};

// Of all engines, whether they were killed or not.
struct Journals {
  std::map<std::string, Try> by_mark;  // "engine.number"
  std::multimap<std::string, Try> by_tag;
  std::map<std::string, int64_t> faults;  // how often each was drawn
};
Journals ReadJournals(const std::vector<std::unique_ptr<EngineProcess>>& engines);

}  // namespace tollgate::test
