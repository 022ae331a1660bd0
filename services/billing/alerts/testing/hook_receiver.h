// A receiver of webhooks for tests, over HTTP on the loopback: stores requests, and fails or
// answers late on demand.
#pragma once

#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/http/server.h"

namespace tollgate::billing::alerts {

class HookReceiver {
 public:
  HookReceiver() {
    server_ = std::make_unique<http::Server>(
        loops_, http::ServerOptions{},
        [this](http::Exchange& exchange) { return Serve(exchange); });
    loops_.Start();
    if (!server_->Listen("127.0.0.1:0").ok()) std::abort();
  }
  ~HookReceiver() {
    server_->Stop();
    loops_.Stop();
  }

  std::string url(const std::string& host = "127.0.0.1") const {
    const std::string address = server_->address();
    return "http://" + host + address.substr(address.rfind(':')) + "/hook";
  }
  // Sets the statuses of the next responses; after them 200 again. 0 breaks the connection after
  // the request was received.
  void Answer(std::vector<int> statuses) {
    const std::lock_guard lock(mutex_);
    statuses_ = std::move(statuses);
  }
  void AnswerBody(std::string body) {
    const std::lock_guard lock(mutex_);
    body_ = std::move(body);
  }
  std::vector<http::HttpRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  Task<void> Serve(http::Exchange& exchange) {
    http::HttpResponse response;
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(exchange.request());
      if (!statuses_.empty()) {
        response.status = statuses_.front();
        statuses_.erase(statuses_.begin());
      }
      response.body = body_;
    }
    if (response.status == 0) {
      co_await exchange.BeginStream(200, {});
      exchange.Abort();
      co_return;
    }
    if (response.status / 100 == 3) response.headers.emplace_back("location", url());
    co_await exchange.Send(std::move(response));
  }

  mutable std::mutex mutex_;
  std::vector<int> statuses_;
  std::string body_;
  std::vector<http::HttpRequest> requests_;
  LoopPool loops_{1};
  std::unique_ptr<http::Server> server_;
};

}  // namespace tollgate::billing::alerts
