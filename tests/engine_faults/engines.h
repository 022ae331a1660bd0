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
  // Keeps its journal and its log in `folder`.
  EngineProcess(const std::string& name, const std::string& folder);

  // Starts on a thread that outlives it (Process::Start). Does not wait until it listens.
  bool Start() { return process_.Start(); }
  void Kill() { process_.Kill(); }
  void Signal(int signal) { process_.Signal(signal); }

  // This percentage of its requests each get one of the scripts (SimFaults). Returns false when the
  // engine does not respond.
  bool SetFaults(int64_t percent, int64_t seed, const std::vector<Json>& scripts);
  // Sets the script of requests without one of their own, and of health checks.
  bool SetScript(const std::string& json);
  // Running requests; -1: no response.
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

// One request in an engine's journal.
struct Try {
  std::string tag;
  std::string fault;  // the fault drawn for it; empty: none
  bool streamed = false;
  int64_t prompt_tokens = 0;
  int64_t tokens = 0;  // of the whole answer
};

// The journals of all engines, including killed ones.
struct Journals {
  std::map<std::string, Try> by_mark;  // "engine.number"
  std::multimap<std::string, Try> by_tag;
  std::map<std::string, int64_t> faults;  // how often each was drawn
};
Journals ReadJournals(const std::vector<std::unique_ptr<EngineProcess>>& engines);

}  // namespace tollgate::test
