// The simulated engine's small HTTP server: one thread, epoll, HTTP/1.1 with keep-alive. It shares
// its cores with the measured program, so it is cheap: one write per batch of tokens, one heap of
// due times, no allocation per token.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tollgate::test {

int64_t SimNowUs();  // monotonic; the same clock as SystemClock

struct SimHttpRequest {
  std::string method;
  std::string path;                                          // without the query
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  std::string_view Header(std::string_view lower_name) const;
};

// A handler's state on a connection while it answers.
class SimAnswer {
 public:
  virtual ~SimAnswer() = default;
};

struct SimConnection {
  int fd = -1;
  uint64_t serial = 0;  // distinguishes a connection from a later one with the same descriptor
  std::string in;
  std::string out;
  size_t sent = 0;       // of out
  bool blocked = false;  // the socket's buffer is full
  bool close_when_sent = false;
  bool close_after_answer = false;
  std::unique_ptr<SimAnswer> answer;
  size_t unsent() const { return out.size() - sent; }
};

class SimLoop {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    // A complete request has arrived. Later requests of the connection wait until EndAnswer.
    virtual void OnRequest(SimConnection& connection, SimHttpRequest request) = 0;
    virtual void OnDue(SimConnection& connection) = 0;
    virtual void OnDrained(SimConnection& connection) = 0;
    // The peer disconnected, or the loop stops. The connection is freed afterwards.
    virtual void OnGone(SimConnection& connection) = 0;
  };

  explicit SimLoop(Handler* handler);
  ~SimLoop();

  // Any thread may call these while the loop is not running.
  bool Listen(const std::string& host, int port, std::string* error);
  int port() const { return port_; }
  void Run();
  void RequestStop();  // async-signal-safe
  void Post(std::function<void()> task);
  void SetPaused(bool paused);

  // Called on the loop's thread only.
  bool ListenAgain(std::string* error);
  void StopListening();
  void CloseAll();
  void ScheduleAt(SimConnection& connection, int64_t due_us);
  // Writes as much of `out` as the socket accepts. Returns false when the connection was closed and
  // freed.
  bool Flush(SimConnection& connection);
  // The answer is complete: the next request may be read.
  bool EndAnswer(SimConnection& connection);
  // Closes and frees; reset: the peer sees a reset, not an end.
  void Close(SimConnection& connection, bool reset);
  int64_t connections() const { return open_.load(std::memory_order_relaxed); }

 private:
  struct Due {
    int64_t at_us;
    int fd;
    uint64_t serial;
    bool operator<(const Due& other) const { return at_us > other.at_us; }
  };
  void Wake();
  void Accept();
  void OnReadable(SimConnection& connection);
  void ParseRequests(SimConnection& connection);
  void RunDue();
  void RunPosted();
  int TimeoutMs() const;
  void Watch(SimConnection& connection, bool writable, bool add);
  SimConnection* Find(int fd, uint64_t serial) const;

  Handler* handler_;
  std::string host_;
  int port_ = 0;
  int epoll_ = -1;
  int wake_ = -1;
  int listener_ = -1;
  uint64_t next_serial_ = 1;
  std::atomic<bool> stop_{false};
  std::atomic<bool> paused_{false};
  std::atomic<int64_t> open_{0};
  std::vector<std::unique_ptr<SimConnection>> connections_;  // by descriptor
  std::priority_queue<Due> due_;
  std::mutex posted_mutex_;
  std::vector<std::function<void()>> posted_;
};

}  // namespace tollgate::test
