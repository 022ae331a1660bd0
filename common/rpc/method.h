// What the caller of a service must know of one of its methods, for ReplicaCaller
// (replica_caller.h). Example:
//   struct VerifyKeyMethod : rpc::UnaryMethod<AuthService, VerifyKeyRequest, VerifyKeyResponse> {
//     static constexpr UnaryPointer kUnary = &Async::VerifyKey;
//     static constexpr int64_t kTimeoutMs = 1'000;  // unless each call has its own
//   };
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <cstdint>
#include <functional>

namespace tollgate::rpc {

// Whether a call that may have reached one replica may be sent to another one.
enum class Moves : uint8_t {
  kNo,   // it stays with its replica, however long it takes
  kYes,  // it changes nothing, or is idempotent by an id
};

template <typename ServiceType, typename RequestType, typename ResponseType>
struct UnaryMethod {
  using Service = ServiceType;
  using Request = RequestType;
  using Response = ResponseType;
  using Async = typename Service::StubInterface::async_interface;
  using UnaryPointer = void (Async::*)(grpc::ClientContext*, const Request*, Response*,
                                       std::function<void(grpc::Status)>);
  static constexpr Moves kMoves = Moves::kYes;
  // Whether a service of the same process may offer it without gRPC.
  static constexpr bool kMayBeDirect = false;
};

// A method that also has a form with many calls on one stream (call_stream.h), kStream. A replica
// of an earlier version, which does not know the stream, gets unary calls.
template <typename Service, typename Request, typename Response, typename CallType,
          typename ReplyType>
struct StreamedMethod : UnaryMethod<Service, Request, Response> {
  using StreamCall = CallType;
  using StreamReply = ReplyType;
  using Base = UnaryMethod<Service, Request, Response>;
  using StreamPointer = void (Base::Async::*)(grpc::ClientContext*,
                                              grpc::ClientBidiReactor<CallType, ReplyType>*);
};

}  // namespace tollgate::rpc
