// Runs a harness without libFuzzer: all files of a corpus folder, then mutations of them from a
// fixed seed, up to 20000 or 1.5 s. An input that crashes is printed as a C string.
//
//   replay CORPUS_FOLDER
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"

// Defined by AddressSanitizer, when built with it.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

constexpr int kRounds = 20'000;
constexpr std::chrono::milliseconds kTime(1500);
constexpr size_t kMaxSize = 64 * 1024;

std::string current;

void PrintCurrent() {
  std::fputs("input: \"", stderr);
  for (const char c : current) std::fprintf(stderr, "\\%03o", static_cast<unsigned char>(c));
  std::fputs("\"\n", stderr);
}

void OnAbort(int) {
  PrintCurrent();
  std::signal(SIGABRT, SIG_DFL);
}

void Run(const std::string& input) {
  current = input;
  // Exactly as large as the input, so that a read beyond its end is detected.
  const std::unique_ptr<uint8_t[]> bytes(new uint8_t[input.size()]);
  std::copy(input.begin(), input.end(), bytes.get());
  LLVMFuzzerTestOneInput(bytes.get(), input.size());
}

std::vector<std::string> ReadCorpus(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

class Mutator {
 public:
  explicit Mutator(const std::vector<std::string>& corpus) : corpus_(corpus) {}

  std::string Next() {
    std::string text = Any();
    for (size_t edits = 1 + Below(4); edits > 0; --edits) Edit(text);
    if (text.size() > kMaxSize) text.resize(kMaxSize);
    return text;
  }

 private:
  size_t Below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  const std::string& Any() { return corpus_[Below(corpus_.size())]; }
  char Byte() {
    // Half of the time, inserts a token of the formats; the NUL at the end is one of them.
    static constexpr char kTelling[] = "\r\n\t :;,{}[]\"\\/u0d18fF-.+eE\x7f\x80\xc3\xef\xff";
    return Below(2) == 0 ? kTelling[Below(sizeof kTelling)] : static_cast<char>(random_());
  }
  void Edit(std::string& text) {
    const size_t at = Below(text.size() + 1);
    const size_t length = Below(std::min<size_t>(text.size() - at, 40) + 1);
    switch (Below(7)) {
      case 0:
        if (at < text.size()) text[at] = Byte();
        break;
      case 1:
        text.insert(at, 1 + Below(3), Byte());
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(Below(text.size() + 1), text.substr(at, length));
        break;
      case 4:
        text.resize(at);
        break;
      case 5: {  // the beginning of this one, the end of another
        const std::string& other = Any();
        text.resize(at);
        text += other.substr(Below(other.size() + 1));
        break;
      }
      default:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << Below(8)));
    }
  }

  const std::vector<std::string>& corpus_;
  std::mt19937 random_{42};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::signal(SIGABRT, OnAbort);
  if (&__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(PrintCurrent);
  const std::vector<std::string> corpus = ReadCorpus(argv[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "no corpus in %s\n", argv[1]);
    return 1;
  }
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& input : corpus) Run(input);
  Mutator mutator(corpus);
  int round = 0;
  while (round < kRounds && std::chrono::steady_clock::now() - start < kTime) {
    Run(mutator.Next());
    ++round;
  }
  std::printf("%zu files, %d mutations\n", corpus.size(), round);
  return 0;
}
