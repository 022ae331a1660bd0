// A collector for unit tests: receives spans by OTLP over gRPC on a free port, or refuses them.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tollgate/otlp/v1/trace.pb.h"

namespace tollgate::tracing {

class FakeCollector : public grpc::CallbackGenericService {
 public:
  FakeCollector() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr);
  }
  ~FakeCollector() override { Stop(); }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  void Stop() {
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }
  // Sets the results of the next calls, in turn; later calls succeed.
  void Answer(std::vector<grpc::Status> statuses) {
    std::lock_guard lock(mutex_);
    answers_ = std::move(statuses);
  }
  // Rejects this many spans of each later call.
  void RejectSpans(int64_t count) {
    std::lock_guard lock(mutex_);
    rejected_ = count;
  }
  // Waits for the spans of calls answered with OK. Returns false if fewer arrive within a minute.
  bool WaitForSpans(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60),
                             [&] { return spans_.size() >= count; });
  }
  bool WaitForCalls(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return calls_ >= count; });
  }
  std::vector<otlp::v1::Span> spans() {
    std::lock_guard lock(mutex_);
    return spans_;
  }
  // Returns all messages as received, including refused ones.
  std::string bytes() {
    std::lock_guard lock(mutex_);
    return bytes_;
  }
  size_t calls() {
    std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  class Reactor : public grpc::ServerGenericBidiReactor {
   public:
    Reactor(FakeCollector& collector, std::string method)
        : collector_(collector), method_(std::move(method)) {
      StartRead(&request_);
    }
    void OnReadDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::CANCELLED);
      otlp::v1::ExportRequest message;
      const bool parsed =
          grpc::GenericDeserialize<grpc::ProtoBufferReader, otlp::v1::ExportRequest>(&request_,
                                                                                     &message)
              .ok();
      EXPECT_TRUE(parsed);
      EXPECT_EQ(method_, "/opentelemetry.proto.collector.trace.v1.TraceService/Export");
      otlp::v1::ExportResponse response;
      const grpc::Status status = collector_.OnExport(message, response);
      if (!status.ok()) return Finish(status);
      bool own = false;
      grpc::GenericSerialize<grpc::ProtoBufferWriter, otlp::v1::ExportResponse>(response,
                                                                                &response_, &own);
      StartWriteAndFinish(&response_, {}, grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    FakeCollector& collector_;
    const std::string method_;
    grpc::ByteBuffer request_, response_;
  };

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    return new Reactor(*this, context->method());
  }

  grpc::Status OnExport(const otlp::v1::ExportRequest& message,
                        otlp::v1::ExportResponse& response) {
    std::lock_guard lock(mutex_);
    ++calls_;
    bytes_ += message.SerializeAsString();
    changed_.notify_all();
    if (!answers_.empty()) {
      const grpc::Status status = answers_.front();
      answers_.erase(answers_.begin());
      if (!status.ok()) return status;
    }
    if (rejected_ > 0) response.mutable_partial_success()->set_rejected_spans(rejected_);
    for (const auto& all : message.resource_spans()) {
      for (const auto& scope : all.scope_spans()) {
        spans_.insert(spans_.end(), scope.spans().begin(), scope.spans().end());
      }
    }
    return grpc::Status::OK;
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<grpc::Status> answers_;
  int64_t rejected_ = 0;
  size_t calls_ = 0;
  std::string bytes_;
  std::vector<otlp::v1::Span> spans_;
};

}  // namespace tollgate::tracing
