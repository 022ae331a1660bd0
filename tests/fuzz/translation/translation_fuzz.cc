// Random engine answers, put into random bytes of a random dialect, cut anywhere and broken at any
// place, through the product's readers and each surface: no illegal sequence, nothing lost, nothing
// doubled, nothing of the engine's own told.
//
//   translation_fuzz_tests [--runs=N] [--surface=NAME] [--seed=FIRST]
//
// A failure prints its seed and both streams; --seed=S --runs=1 repeats it.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/fuzz/translation/compare.h"
#include "tests/fuzz/translation/text.h"

// Of AddressSanitizer, when it is there.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace tollgate::fuzz {
namespace {

struct Counts {
  uint64_t runs = 0, streams = 0, errors = 0, bodies = 0, refused = 0, engine_bytes = 0;
};

// For a crash's report.
const char* current_surface = "";
uint64_t current_seed = 0;

void PrintCurrent() {
  std::fprintf(stderr, "\n--surface=%s --seed=%llu --runs=1\n", current_surface,
               static_cast<unsigned long long>(current_seed));
}

// The pipeline's relay: one buffer per batch of events, each event whole.
std::string Encode(Random& random, gateway::StreamEncoder& encoder, const Generation& generation,
                   std::vector<std::string>& wrong) {
  std::string stream;
  const size_t pings = random.Pick<size_t>({0, 0, 20});
  const auto take = [&](std::string& out) {
    if (!out.empty() && !out.ends_with("\n\n")) wrong.emplace_back("an event leaves in pieces");
    stream += out;
    out.clear();
  };
  std::string out;
  for (const inference::v1::Event& event : generation.events) {
    if (random.Percent(pings)) encoder.KeepAlive(out);
    if (event.has_started()) encoder.OnStarted(event.started(), out);
    if (event.has_delta()) encoder.OnDelta(event.delta(), out);
    take(out);
  }
  if (random.Percent(pings)) encoder.KeepAlive(out);
  if (generation.error) {
    encoder.OnError(*generation.error, out);
  } else {
    encoder.OnEnd(generation.end, out);
  }
  take(out);
  return stream;
}

std::string Printable(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) {
    if (c == '\r') {
      out += "\\r";
    } else if (c == '\n') {
      out += "\\n\n";
    } else {
      out += c;
    }
  }
  return out;
}

void Report(const Run& run, const std::vector<std::string>& wrong) {
  PrintCurrent();
  for (const std::string& line : wrong) std::fprintf(stderr, "  %s\n", line.c_str());
  std::fprintf(stderr, "engine%s:\n%s\n", run.engine.whole ? " (not streamed)" : "",
               Printable(run.engine.bytes).c_str());
  if (run.generation.error) {
    std::fprintf(stderr, "error: %s\n", run.generation.error->ToString().c_str());
  }
  std::fprintf(stderr, "stream:\n%s\nbody:\n%s\n", run.stream.c_str(), run.body.c_str());
}

bool RunOne(const SurfaceRow& row, uint64_t seed, Counts& counts) {
  Random random(seed);
  Run run;
  run.answer = RandomAnswer(random, row.abilities);
  run.engine = RandomEngineBytes(random, run.answer, row.abilities);
  run.asked.choices = static_cast<int>(run.answer.choices.size());
  run.asked.include_usage = random.Percent(50);
  run.asked.stop = ToUtf8(run.answer.choices[0].stop_sequence);
  run.generation = Translate(random, run.engine, row.kind, run.asked.choices, random.Percent(4));

  std::vector<std::string> wrong;
  const auto document = json::Document::Parse(row.request(run.asked));
  auto request = row.surface().ParseRequest(*document);
  if (!request.ok()) {
    std::fprintf(stderr, "%s: %s\n", row.name, request.error().ToString().c_str());
    return false;
  }
  const gateway::AnswerStamp stamp{"0123456789abcdefghijABCD", 1'700'000'000};
  const Generation& generation = run.generation;
  // Before its first event, a stream can still be refused with its real status.
  if (!generation.error || !generation.events.empty()) {
    run.stream =
        Encode(random, *row.surface().MakeStreamEncoder(*request, stamp), generation, wrong);
    ++counts.streams;
  } else {
    ++counts.refused;
  }
  if (!generation.error) {
    const auto folded = row.surface().MakeFoldedAnswer(*request, stamp);
    for (const inference::v1::Event& event : generation.events) {
      if (event.has_delta()) folded->OnDelta(event.delta());
    }
    run.body = folded->Finish(generation.end);
    ++counts.bodies;
  } else {
    ++counts.errors;
  }
  counts.engine_bytes += run.engine.bytes.size();
  for (std::string& line : Compare(row, run)) wrong.push_back(std::move(line));
  if (!wrong.empty()) Report(run, wrong);
  return wrong.empty();
}

bool RunSurface(const SurfaceRow& row, uint64_t first_seed, uint64_t runs) {
  Counts counts;
  current_surface = row.name;
  const auto start = std::chrono::steady_clock::now();
  uint64_t failures = 0;
  for (; counts.runs < runs && failures < 3; ++counts.runs) {
    current_seed = first_seed + counts.runs;
    if (!RunOne(row, current_seed, counts)) ++failures;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf(
      "%s: %llu runs in %.1f s: %llu streams, %llu bodies, %llu errors (%llu before the stream), "
      "%llu bytes of engines\n",
      row.name, static_cast<unsigned long long>(counts.runs), took.count(),
      static_cast<unsigned long long>(counts.streams),
      static_cast<unsigned long long>(counts.bodies),
      static_cast<unsigned long long>(counts.errors),
      static_cast<unsigned long long>(counts.refused),
      static_cast<unsigned long long>(counts.engine_bytes));
  return failures == 0;
}

}  // namespace

int Main(int argc, char** argv) {
  uint64_t runs = 1000, seed = 1;
  std::string surface;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    if (name == "--runs") {
      runs = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--seed") {
      seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--surface") {
      surface = value;
    } else {
      std::fprintf(stderr, "unknown argument %s\n", argument.c_str());
      return 2;
    }
  }
  if (&__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(PrintCurrent);
  std::signal(SIGABRT, [](int) {
    PrintCurrent();
    std::signal(SIGABRT, SIG_DFL);
  });
  bool good = true, any = false;
  for (const SurfaceRow& row : SurfaceRows()) {
    if (!surface.empty() && surface != row.name) continue;
    any = true;
    good = RunSurface(row, seed, runs) && good;
  }
  if (!any) std::fprintf(stderr, "no surface is called %s\n", surface.c_str());
  return good && any ? 0 : 1;
}

}  // namespace tollgate::fuzz

int main(int argc, char** argv) { return tollgate::fuzz::Main(argc, argv); }
