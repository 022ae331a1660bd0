// A body type that does not copy the payload. Internal to common/http.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/message.hpp>
#include <cstdint>
#include <string_view>

namespace tollgate::http {

// As http::buffer_body, but the payload stays where it was read: the value is the payload part of
// the bytes passed to the last put.
struct ViewBody {
  using value_type = std::string_view;

  class reader {
   public:
    template <bool kIsRequest, class Fields>
    reader(boost::beast::http::header<kIsRequest, Fields>&, value_type& view) : view_(view) {}
    void init(const boost::optional<uint64_t>&, boost::system::error_code& error) { error = {}; }
    template <class Buffers>
    size_t put(const Buffers& buffers, boost::system::error_code& error) {
      error = {};
      const boost::asio::const_buffer bytes = *boost::asio::buffer_sequence_begin(buffers);
      view_ = {static_cast<const char*>(bytes.data()), bytes.size()};
      return bytes.size();
    }
    void finish(boost::system::error_code& error) { error = {}; }

   private:
    value_type& view_;
  };
};

}  // namespace tollgate::http
