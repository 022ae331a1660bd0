#include "services/inference_router/engine/answer_start.h"

#include <gtest/gtest.h>

#include <string>

namespace tollgate::inference_router {
namespace {

TEST(AnswerStart, EveryPrefixOfAStreamMayBeOne) {
  for (const std::string stream :
       {"data: {\"choices\":[]}\n\ndata: [DONE]\n\n", "\xEF\xBB\xBF: hello\r\n\r\ndata:{}\r\n\r\n",
        "event: message\nid: 1\nretry: 10\ndata: null\n\n", "\n\ndata\n\n", ": only a comment",
        "data:{\ndata: \"id\":1,\ndata:[]}\n\n", "unknown\r\nx-y: <z>\r\ndata: {}\r\n\r\n"}) {
    for (size_t size = 0; size <= stream.size(); ++size) {
      EXPECT_TRUE(MayBeEventStream(std::string_view(stream).substr(0, size)))
          << stream.substr(0, size);
    }
  }
}

TEST(AnswerStart, WhatIsNoStreamIsKnownByItsFirstBytes) {
  for (const char* other :
       {"<html>", "Internal Server Error", "{\"object\":", "dat a", "data: hello", "data: not",
        "data: [1]", "data: \"a\"", ": comment\n\nno sense", "data: {}\n\ndata: \"id\""}) {
    EXPECT_FALSE(MayBeEventStream(other)) << other;
  }
  EXPECT_FALSE(MayBeEventStream(std::string_view("\0\1\2", 3)));
}

}  // namespace
}  // namespace tollgate::inference_router
