// Constants shared by client and server of the token stream (InferenceService.Link).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tollgate {

// Value of `internal` in the End of a request that a draining router refused. In a frame of stream
// 0 it asks the gateway to send no more requests on the link.
inline constexpr char kLinkRefusal[] = "the inference router is stopping";

// Initial window per request: bytes of events that a router may send ahead of the receiver.
inline constexpr int64_t kLinkWindowBytes = 256 * 1024;

// Metadata of a side that accepts bodies (router) or events (gateway) in pieces. A side without it
// has an earlier version and accepts messages of up to 64 MiB.
inline constexpr char kLinkPiecesKey[] = "tollgate-link-pieces";

// Bodies and events above this size travel in pieces of this size, so that frames of other requests
// pass between them and messages stay well below rpc::kMaxMessageBytes.
inline constexpr size_t kLinkPieceBytes = 256 * 1024;
// A message of at least this size gets no more frames.
inline constexpr size_t kLinkMessageBytes = 1024 * 1024;

// Bytes of requests, in any state, that may be queued for one link of a gateway worker; the last
// one may exceed it. Further requests go to another link or are refused.
inline constexpr int64_t kMaxLinkQueuedBytes = 128 << 20;
// Bytes of events that may be queued on one link of a router. Beyond this, producers wait even if
// their request has window left.
inline constexpr int64_t kMaxLinkEventBytes = 32 << 20;
// Messages of one link that a router reads ahead of its loop.
inline constexpr int kMaxUnreadMessages = 8;
// Maximum size of an event in bytes: the largest answer of an engine (32 MiB) in one event, plus a
// margin.
inline constexpr size_t kMaxEventBytes = 34 << 20;
// Maximum body in bytes that a router without kLinkPiecesKey accepts.
inline constexpr size_t kMaxUnsplitBodyBytes = 60 << 20;

// Default maximum of a request body that a router accepts, in bytes: twice the gateway's default
// (decision 19), since translation by a surface can lengthen a body.
inline constexpr int64_t kDefaultRouterBodyBytes = 32 << 20;
// Maximum prompt in bytes that engines are asked to count; CountTokens is one message.
inline constexpr size_t kMaxCountedBytes = 3 << 20;

}  // namespace tollgate
