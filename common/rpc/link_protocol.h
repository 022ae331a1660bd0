// Constants shared by client and server of the token stream (InferenceService.Link).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tollgate {

// `internal` of the End of a request that the router refused because it is draining. In a frame of
// stream 0 it asks the gateway to send no more requests on the link.
inline constexpr char kLinkRefusal[] = "the inference router is stopping";

// Initial window per request: bytes of events that a router may send ahead of the receiver.
inline constexpr int64_t kLinkWindowBytes = 256 * 1024;

// Metadata of a side that takes bodies (router) or events (gateway) in pieces. A side without it is
// of an earlier version and takes messages of 64 MiB.
inline constexpr char kLinkPiecesKey[] = "tollgate-link-pieces";

// Bodies and events above this many bytes travel in pieces of this size: other requests' frames
// pass between them, and no message comes near the largest one (rpc::kMaxMessageBytes).
inline constexpr size_t kLinkPieceBytes = 256 * 1024;
// A message gets no more frames once it has this many bytes.
inline constexpr size_t kLinkMessageBytes = 1024 * 1024;

// Bytes of requests that may wait for one link of one gateway worker, in whichever state; the last
// one may exceed it. Further requests go to another link or are refused.
inline constexpr int64_t kMaxLinkQueuedBytes = 128 << 20;
// Bytes of events that may wait in one link of a router. Producers then wait, whatever window their
// request has left.
inline constexpr int64_t kMaxLinkEventBytes = 32 << 20;
// Messages of one link that a router reads ahead of its loop.
inline constexpr int kMaxUnreadMessages = 8;
// The largest event in bytes: the largest answer of an engine (32 MiB) in one event, with room.
inline constexpr size_t kMaxEventBytes = 34 << 20;
// The largest body in bytes that a router without kLinkPiecesKey takes.
inline constexpr size_t kMaxUnsplitBodyBytes = 60 << 20;

// The largest request body in bytes that a router takes, by default: twice the gateway's default
// (decision 19), since the translation of a surface can lengthen a body.
inline constexpr int64_t kDefaultRouterBodyBytes = 32 << 20;
// The largest prompt in bytes that engines are asked to count; CountTokens is one message.
inline constexpr size_t kMaxCountedBytes = 3 << 20;

}  // namespace tollgate
