#include "common/observability/line_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <sstream>
#include <thread>
#include <vector>

namespace tollgate::log {
namespace {

constexpr int kLongMs = 60'000;

// A pipe that the test reads.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0); }
  ~Pipe() {
    CloseReader();
    close(ends_[1]);
  }
  int writer() const { return ends_[1]; }
  void CloseReader() {
    if (ends_[0] >= 0) close(ends_[0]);
    ends_[0] = -1;
  }
  bool Full() const {  // for a writer of whole pieces
    pollfd ready{ends_[1], POLLOUT, 0};
    return poll(&ready, 1, 0) == 0;
  }
  // Reads until the text ends with the ending; returns "" on a timeout.
  std::string ReadUntil(const std::string& ending) const {
    std::string text;
    char buffer[4096];
    for (;;) {
      pollfd ready{ends_[0], POLLIN, 0};
      if (poll(&ready, 1, kLongMs) <= 0) return "";
      const ssize_t count = read(ends_[0], buffer, sizeof buffer);
      if (count <= 0) return "";
      text.append(buffer, static_cast<size_t>(count));
      if (text.ends_with(ending)) return text;
    }
  }

 private:
  int ends_[2] = {-1, -1};
};

struct Writer {
  explicit Writer(int fd, size_t max_queued_bytes = 64 * 1024)
      : lines({.fd = fd,
               .max_queued_bytes = max_queued_bytes,
               .dropped_line = [](size_t n) { return "dropped " + std::to_string(n) + "\n"; },
               .on_dropped = [this](size_t n) { dropped += n; }}) {}
  std::atomic<size_t> dropped{0};
  LineWriter lines;  // its thread uses `dropped`
};

std::string NumberedLine(int number) {
  std::string line = std::to_string(number);
  line.resize(99, '.');
  return line + "\n";
}

TEST(LineWriter, LinesComeWholeAndInOrderOfEachThread) {
  Pipe pipe;
  Writer writer(pipe.writer());
  std::thread reader;
  std::string text;
  reader = std::thread([&] { text = pipe.ReadUntil("end\n"); });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        writer.lines.Put(std::to_string(t) + " " + std::to_string(i) + " " + std::string(200, 'x') +
                         "\n");
        if (i % 10 == 0) EXPECT_TRUE(writer.lines.Flush(kLongMs));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  writer.lines.Put("end\n");
  EXPECT_TRUE(writer.lines.Stop(kLongMs));
  reader.join();
  std::istringstream lines(text);
  int next[4] = {};
  int thread = 0;
  int number = 0;
  std::string tail;
  while (lines >> thread >> number >> tail) {
    EXPECT_EQ(number, next[thread]++);
    EXPECT_EQ(tail, std::string(200, 'x'));
  }
  for (const int count : next) EXPECT_EQ(count, 100);
  EXPECT_EQ(writer.dropped, 0u);
}

TEST(LineWriter, ALineLongerThanAPieceIsWrittenWhole) {
  Pipe pipe;
  Writer writer(pipe.writer());
  const std::string line = std::string(20'000, 'y') + "\n";
  EXPECT_TRUE(writer.lines.Put(line));
  EXPECT_TRUE(writer.lines.Put("short\n"));
  EXPECT_EQ(pipe.ReadUntil("short\n"), line + "short\n");
}

TEST(LineWriter, AReaderThatStopsHoldsUpNobodyAndItsMissingLinesAreCounted) {
  Pipe pipe;
  Writer writer(pipe.writer());
  int accepted = 0;
  int number = 0;
  for (; !pipe.Full(); ++number) accepted += writer.lines.Put(NumberedLine(number));
  for (int i = 0; i < 10'000; ++i) accepted += writer.lines.Put(NumberedLine(number++));
  EXPECT_FALSE(writer.lines.Flush(1));
  // The pipe holds 64 KiB and the queue 64 KiB.
  EXPECT_GT(accepted, 600);
  EXPECT_LT(accepted, 1'500);
  EXPECT_EQ(writer.dropped, static_cast<size_t>(number - accepted));

  // The reader returns: every accepted line arrives in order, and the dropped ones are reported.
  std::string text;
  std::thread reader([&] { text = pipe.ReadUntil("end\n"); });
  EXPECT_TRUE(writer.lines.Flush(kLongMs));
  EXPECT_TRUE(writer.lines.Put("end\n"));
  EXPECT_TRUE(writer.lines.Stop(kLongMs));
  reader.join();
  std::istringstream lines(text);
  std::string line;
  int whole = 0;
  size_t reported = 0;
  int last = -1;
  while (std::getline(lines, line) && line != "end") {
    if (line.starts_with("dropped ")) {
      reported += std::stoul(line.substr(8));
      continue;
    }
    EXPECT_EQ(line.size(), 99u);
    EXPECT_GT(std::stoi(line), last);
    last = std::stoi(line);
    ++whole;
  }
  EXPECT_EQ(whole, accepted);
  EXPECT_EQ(reported, writer.dropped);
}

TEST(LineWriter, StopEndsThoughNobodyReads) {
  Pipe pipe;
  Writer writer(pipe.writer());
  for (int i = 0; !pipe.Full(); ++i) writer.lines.Put(NumberedLine(i));
  EXPECT_FALSE(writer.lines.Stop(10));
  EXPECT_FALSE(writer.lines.Put("late\n"));
}

TEST(LineWriter, LinesWithoutAnyReaderAreCounted) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  pipe.CloseReader();
  Writer writer(pipe.writer());
  EXPECT_TRUE(writer.lines.Put("one\n"));
  EXPECT_TRUE(writer.lines.Flush(kLongMs));
  EXPECT_TRUE(writer.lines.Put("two\n"));
  EXPECT_TRUE(writer.lines.Stop(kLongMs));
  EXPECT_EQ(writer.dropped, 2u);
}

}  // namespace
}  // namespace tollgate::log
