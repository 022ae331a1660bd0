// tollgate-engine-sim: the simulated engine as a program. It answers with generated text.
#include <getopt.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/support/engine_sim.h"

namespace {

constexpr char kUsage[] =
    R"(tollgate-engine-sim: a SIMULATED inference engine (vLLM's HTTP dialect, generated answers)

  --listen HOST:PORT       default 127.0.0.1:8000; port 0 takes any free one
  --address-file FILE      write {"http":"HOST:PORT"} there once it listens
  --model NAME             may be given several times; default sim/model
  --context-window N       tokens; default 131072
  --tokens N               output tokens of an answer; default 32
  --reasoning-tokens N     default 0
  --reasoning-field NAME   reasoning (default) or reasoning_content
  --first-token-ms N       default 0
  --token-ms X             between tokens; default 0
  --tokens-per-second X    the inverse of --token-ms
  --seed N                 default 1
  --api-key KEY            require this bearer key
  --max-running N          more get 429; default 0: no limit
  --keep-requests          keep bodies for GET /sim/bodies
  --usage-details          report cached and reasoning tokens
  --flat-errors            errors in the old form of vLLM
  --dialect NAME           tokenizer endpoints of: vllm (default), sglang, sglang-old, llamacpp,
                           tgi or none
  --name NAME              in marks and in the journal, with the process's id
  --journal FILE           add a line of JSON for each request
)";

enum Option {
  kListen = 1000,
  kAddressFile,
  kModel,
  kWindow,
  kTokens,
  kReasoning,
  kReasoningField,
  kFirst,
  kToken,
  kRate,
  kSeed,
  kApiKey,
  kMaxRunning,
  kKeep,
  kDetails,
  kFlat,
  kDialect,
  kName,
  kJournal,
  kHelp
};

struct Flags {
  tollgate::test::EngineSimOptions options;
  std::string address_file;
};

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "tollgate-engine-sim: %s\n", why.c_str());
  std::exit(2);
}

void SetListen(const std::string& text, Flags& flags) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) Fail("--listen needs HOST:PORT");
  flags.options.host = text.substr(0, colon);
  flags.options.port = std::atoi(text.c_str() + colon + 1);
}

tollgate::test::SimDialect DialectNamed(const std::string& name) {
  using enum tollgate::test::SimDialect;
  if (name == "vllm") return kVllm;
  if (name == "sglang") return kSglang;
  if (name == "sglang-old") return kSglangOld;
  if (name == "llamacpp") return kLlamaCpp;
  if (name == "tgi") return kTgi;
  if (name != "none") Fail("unknown dialect " + name);
  return kNone;
}

void Apply(int option, const char* value, Flags& flags) {
  auto& options = flags.options;
  switch (option) {
    case kListen:
      return SetListen(value, flags);
    case kAddressFile:
      flags.address_file = value;
      return;
    case kModel:
      options.models.emplace_back(value);
      return;
    case kWindow:
      options.context_window = std::atoll(value);
      return;
    case kTokens:
      options.tokens = std::atoll(value);
      return;
    case kReasoning:
      options.reasoning_tokens = std::atoll(value);
      return;
    case kReasoningField:
      options.reasoning_field = value;
      return;
    case kFirst:
      options.first_token_ms = std::atoll(value);
      return;
    case kToken:
      options.token_ms = std::atof(value);
      return;
    case kRate:
      options.token_ms = std::atof(value) > 0 ? 1000.0 / std::atof(value) : 0;
      return;
    case kSeed:
      options.seed = std::strtoull(value, nullptr, 10);
      return;
    case kApiKey:
      options.api_key = value;
      return;
    case kMaxRunning:
      options.max_running = std::atoll(value);
      return;
    case kKeep:
      options.keep_requests = true;
      return;
    case kDetails:
      options.usage_details = true;
      return;
    case kFlat:
      options.flat_errors = true;
      return;
    case kDialect:
      options.dialect = DialectNamed(value);
      return;
    case kName:
      options.name = value + std::string("x") + std::to_string(getpid());
      return;
    case kJournal:
      options.journal = value;
      return;
    case kHelp:
      std::fputs(kUsage, stdout);
      std::exit(0);
    default:
      Fail("unknown flag; see --help");
  }
}

Flags Read(int argc, char** argv) {
  static const option kOptions[] = {{"listen", 1, nullptr, kListen},
                                    {"address-file", 1, nullptr, kAddressFile},
                                    {"model", 1, nullptr, kModel},
                                    {"context-window", 1, nullptr, kWindow},
                                    {"tokens", 1, nullptr, kTokens},
                                    {"reasoning-tokens", 1, nullptr, kReasoning},
                                    {"reasoning-field", 1, nullptr, kReasoningField},
                                    {"first-token-ms", 1, nullptr, kFirst},
                                    {"token-ms", 1, nullptr, kToken},
                                    {"tokens-per-second", 1, nullptr, kRate},
                                    {"seed", 1, nullptr, kSeed},
                                    {"api-key", 1, nullptr, kApiKey},
                                    {"max-running", 1, nullptr, kMaxRunning},
                                    {"keep-requests", 0, nullptr, kKeep},
                                    {"usage-details", 0, nullptr, kDetails},
                                    {"flat-errors", 0, nullptr, kFlat},
                                    {"dialect", 1, nullptr, kDialect},
                                    {"name", 1, nullptr, kName},
                                    {"journal", 1, nullptr, kJournal},
                                    {"help", 0, nullptr, kHelp},
                                    {nullptr, 0, nullptr, 0}};
  Flags flags;
  flags.options.port = 8000;
  flags.options.models.clear();
  flags.options.keep_requests = false;
  for (int option; (option = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;)
    Apply(option, optarg, flags);
  if (optind < argc) Fail(std::string("unexpected argument ") + argv[optind]);
  if (flags.options.models.empty()) flags.options.models = {"sim/model"};
  return flags;
}

}  // namespace

int main(int argc, char** argv) {
  const Flags flags = Read(argc, argv);
  // One descriptor per stream.
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGINT);
  sigaddset(&stop, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);

  tollgate::test::EngineSim sim(flags.options);
  std::string error;
  if (!sim.Start(&error)) Fail(error);
  const std::string address = flags.options.host + ":" + std::to_string(sim.port());
  if (!flags.address_file.empty()) {
    // Renamed into place, so that a reader never sees a partial file.
    const std::string half = flags.address_file + ".new";
    std::ofstream(half) << "{\"http\":\"" << address << "\"}\n";
    if (std::rename(half.c_str(), flags.address_file.c_str()) != 0)
      Fail("cannot write " + flags.address_file);
  }
  std::fprintf(stderr, "tollgate-engine-sim (a simulator, no model) listens on http://%s\n",
               address.c_str());
  int signal = 0;
  sigwait(&stop, &signal);
  sim.Stop();
  return 0;
}
