// The command line of the fuzz programs that run by seed:
//   [--runs=N] [--seed=FIRST] [--only=NAME]
// A failure or crash prints the arguments that reproduce it.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

// Defined by AddressSanitizer, when built with it.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace tollgate::fuzz {

struct Seeded {
  uint64_t runs = 1000;
  uint64_t seed = 1;
  std::string only;
};

// Printed with a failure or a crash.
inline const char* current_name = "";
inline uint64_t current_seed = 0;

inline void PrintCurrent() {
  std::fprintf(stderr, "\n--only=%s --seed=%llu --runs=1\n", current_name,
               static_cast<unsigned long long>(current_seed));
}

// Returns false for an unknown argument.
inline bool ReadArguments(int argc, char** argv, Seeded& into) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    if (name == "--runs") {
      into.runs = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--seed") {
      into.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--only") {
      into.only = value;
    } else {
      std::fprintf(stderr, "unknown argument %s\n", argument.c_str());
      return false;
    }
  }
  if (&__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(PrintCurrent);
  std::signal(SIGABRT, [](int) {
    PrintCurrent();
    std::signal(SIGABRT, SIG_DFL);
  });
  return true;
}

// Calls run(seed) for each seed, until three have failed. Returns whether all succeeded.
inline bool RunSeeds(const char* name, const Seeded& asked,
                     const std::function<bool(uint64_t seed)>& run) {
  if (!asked.only.empty() && asked.only != name) return true;
  current_name = name;
  const auto start = std::chrono::steady_clock::now();
  uint64_t runs = 0, failures = 0;
  for (; runs < asked.runs && failures < 3; ++runs) {
    current_seed = asked.seed + runs;
    if (!run(current_seed)) ++failures;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("%s: %llu runs in %.1f s\n", name, static_cast<unsigned long long>(runs),
              took.count());
  std::fflush(stdout);
  return failures == 0;
}

}  // namespace tollgate::fuzz
