// Look-ups of host names that a caller can leave. Nothing can interrupt getaddrinfo, which waits
// for silent name servers for tens of seconds: it runs on threads that nobody waits for.
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

// Thread-safe. Callers that ask for the same name at the same time share one look-up, so that a
// name that hangs holds one thread.
class Resolver {
 public:
  struct Answer {
    boost::system::error_code error;
    std::vector<asio::ip::address> addresses;
  };
  // May block. Called on the threads of the resolver.
  using LookUp = std::function<Answer(const std::string& host)>;

  // Names that are looked up at the same time; further names wait for one of them.
  static constexpr size_t kMaxThreads = 16;

  explicit Resolver(LookUp look_up = SystemLookUp);
  // Does not wait for look-ups that are running.
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

// One look-up of one caller. Used only on the thread of the loop.
class ResolverCall {
 public:
  ResolverCall(Loop& loop, const Resolver& resolver);
  // Leaves the look-up: a late answer is dropped.
  ~ResolverCall();
  ResolverCall(const ResolverCall&) = delete;
  ResolverCall& operator=(const ResolverCall&) = delete;

  // Once. operation_aborted after Cancel.
  Task<Resolver::Answer> Run(std::string host);
  // At any time: Run ends at once.
  void Cancel();

 private:
  friend struct Resolver::State;
  struct Waiting;
  Waiter waiter_;
  std::shared_ptr<Resolver::State> state_;
  std::shared_ptr<Waiting> waiting_;
};

}  // namespace tollgate::http
