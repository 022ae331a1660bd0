// Encoders for tests.
#pragma once

#include <brotli/encode.h>
#include <zlib.h>
#include <zstd.h>

#include <string>

#include "common/coding/body_decoder.h"

namespace tollgate::coding::testing {

inline std::string Gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool done = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(done ? out.size() - stream.avail_out : 0);
  deflateEnd(&stream);
  return out;
}

// window_log: for a frame without its size; 0: chosen by zstd.
inline std::string Zstd(const std::string& text, int window_log = 0) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  if (window_log > 0) {
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  }
  std::string out(ZSTD_compressBound(text.size()) + 64, '\0');
  ZSTD_outBuffer output{out.data(), out.size(), 0};
  // Compresses in two calls: with one, zstd would know the size and shrink the window.
  ZSTD_inBuffer half{text.data(), text.size() / 2, 0};
  while (half.pos < half.size) ZSTD_compressStream2(context, &output, &half, ZSTD_e_continue);
  ZSTD_inBuffer rest{text.data(), text.size(), half.pos};
  const bool done = ZSTD_compressStream2(context, &output, &rest, ZSTD_e_end) == 0;
  out.resize(done ? output.pos : 0);
  ZSTD_freeCCtx(context);
  return out;
}

inline std::string Brotli(const std::string& text) {
  std::string out(BrotliEncoderMaxCompressedSize(text.size()) + 64, '\0');
  size_t size = out.size();
  const bool done = BrotliEncoderCompress(
      5, BROTLI_MAX_WINDOW_BITS, BROTLI_MODE_GENERIC, text.size(),
      reinterpret_cast<const uint8_t*>(text.data()), &size, reinterpret_cast<uint8_t*>(out.data()));
  out.resize(done ? size : 0);
  return out;
}

inline std::string Encode(Coding coding, const std::string& text) {
  return coding == Coding::kGzip ? Gzip(text) : coding == Coding::kZstd ? Zstd(text) : Brotli(text);
}

}  // namespace tollgate::coding::testing
