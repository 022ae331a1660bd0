// Random engine answers, encoded in a random dialect, split and broken at random places, through
// the product's readers and each surface: no illegal sequence, no loss, no duplicate, no
// engine-internal text.
//
//   translation_fuzz_tests [--runs=N] [--only=SURFACE] [--seed=FIRST]
//
// A failure prints its seed and both streams; --seed=S --runs=1 repeats it.
#include <cstdio>
#include <string>

#include "tests/fuzz/random_text.h"
#include "tests/fuzz/seeded.h"
#include "tests/fuzz/translation/compare.h"

namespace tollgate::fuzz {
namespace {

struct Counts {
  uint64_t streams = 0, errors = 0, bodies = 0, refused = 0, engine_bytes = 0;
};

// The relay of the pipeline: one buffer per batch of events, each event whole.
std::string Encode(Random& random, gateway::StreamEncoder& encoder, const Generation& generation,
                   std::vector<std::string>& wrong) {
  std::string stream;
  const size_t pings = random.Pick<size_t>({0, 0, 20});
  const auto take = [&](std::string& out) {
    if (!out.empty() && !out.ends_with("\n\n"))
      wrong.emplace_back("an event was written in pieces");
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
  const gateway::ResponseStamp stamp{"0123456789abcdefghijABCD", 1'700'000'000};
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
    const auto encoder = row.surface().MakeBodyEncoder(*request, stamp);
    for (const inference::v1::Event& event : generation.events) {
      if (event.has_delta()) encoder->OnDelta(event.delta());
    }
    run.body = encoder->Finish(generation.end);
    ++counts.bodies;
  } else {
    ++counts.errors;
  }
  counts.engine_bytes += run.engine.bytes.size();
  for (std::string& line : Compare(row, run)) wrong.push_back(std::move(line));
  if (!wrong.empty()) Report(run, wrong);
  return wrong.empty();
}

bool RunSurface(const SurfaceRow& row, const Seeded& asked) {
  Counts counts;
  const bool good =
      RunSeeds(row.name, asked, [&](uint64_t seed) { return RunOne(row, seed, counts); });
  std::printf(
      "  %llu streams, %llu bodies, %llu errors (%llu before the stream), %llu bytes of engines\n",
      static_cast<unsigned long long>(counts.streams),
      static_cast<unsigned long long>(counts.bodies),
      static_cast<unsigned long long>(counts.errors),
      static_cast<unsigned long long>(counts.refused),
      static_cast<unsigned long long>(counts.engine_bytes));
  return good;
}

}  // namespace

int Main(int argc, char** argv) {
  Seeded asked;
  if (!ReadArguments(argc, argv, asked)) return 2;
  bool good = true, any = false;
  for (const SurfaceRow& row : SurfaceRows()) {
    if (!asked.only.empty() && asked.only != row.name) continue;
    any = true;
    good = RunSurface(row, asked) && good;
  }
  if (!any) std::fprintf(stderr, "unknown surface %s\n", asked.only.c_str());
  return good && any ? 0 : 1;
}

}  // namespace tollgate::fuzz

int main(int argc, char** argv) { return tollgate::fuzz::Main(argc, argv); }
