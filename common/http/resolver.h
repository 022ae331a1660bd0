// Look-ups of host names that a caller can abandon. getaddrinfo cannot be interrupted, and it waits
// tens of seconds for silent name servers. So it runs on threads that are never joined.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/loop.h"
#include "common/runtime/notify.h"
#include "common/runtime/task.h"

namespace tollgate::http {

// Thread-safe. Concurrent calls for the same name share one look-up, so that a name that hangs
// holds only one thread.
class Resolver {
 public:
  struct Answer {
    boost::system::error_code error;
    std::vector<asio::ip::address> addresses;
  };
  // Called on the resolver's threads. May block.
  using LookUp = std::function<Answer(const std::string& host)>;

  // Limit of concurrent look-ups; further names wait.
  static constexpr size_t kMaxThreads = 16;

  explicit Resolver(LookUp look_up = SystemLookUp);
  // Does not wait for running look-ups.
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // The resolver of the process.
  static const std::shared_ptr<Resolver>& Shared();

 private:
  friend class ResolverCall;
  struct State;
  static Answer SystemLookUp(const std::string& host);
  std::shared_ptr<State> state_;
};

// One caller's look-up. Used only on the thread of the loop.
class ResolverCall {
 public:
  ResolverCall(Loop& loop, const Resolver& resolver);
  // Abandons the look-up: a late answer is dropped.
  ~ResolverCall();
  ResolverCall(const ResolverCall&) = delete;
  ResolverCall& operator=(const ResolverCall&) = delete;

  // Call it once. Returns operation_aborted after Cancel.
  Task<Resolver::Answer> Run(std::string host);
  // Ends Run at once. Callable at any time.
  void Cancel();

 private:
  friend struct Resolver::State;
  struct Waiting;
  Waiter waiter_;
  std::shared_ptr<Resolver::State> state_;
  std::shared_ptr<Waiting> waiting_;
};

}  // namespace tollgate::http
