#include "gateway/envelopes/stream_error.h"

#include <gtest/gtest.h>

namespace tollgate::gateway {
namespace {

TEST(StreamError, IsOneEvent) {
  EXPECT_EQ(OpenAiStreamError(Error{ErrorId::kUpstreamError, "Two\n\nlines."}),
            "data: {\"error\":{\"message\":\"Two\\n\\nlines.\",\"type\":\"server_error\","
            "\"code\":\"server_error\"}}\n\n");
}

}  // namespace
}  // namespace tollgate::gateway
