// gzip by zlib, zstd, and xz by liblzma. Each checks what its format has to check: lengths and sums. (libarchive has
// filters for all three, but does not look at the sums of gzip.)
#include <algorithm>
#include <climits>
#include <new>
#include <thread>

#include <fmt/format.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include "codec/compression.h"
#include "pif/base/assert.h"

namespace pif::cli {
namespace {

using In = std::span<const std::byte>;
using Out = std::span<std::byte>;

constexpr int kGzipLevel = 6, kGzipWrapper = 16, kGzipMemory = 8;  // as gzip itself has them
constexpr int kZstdLevel = 3;
constexpr std::uint32_t kXzLevel = 6;
constexpr std::uint64_t kXzMemoryMax = 256u << 20;  // to decompress; xz -9 needs 65 MiB
constexpr unsigned kThreadsMax = 4;

unsigned threads() { return std::clamp(std::thread::hardware_concurrency(), 1u, kThreadsMax); }
tl::unexpected<Error> damaged(std::string_view why) { return fail(Code::kCorrupt, fmt::format("is damaged: {}", why)); }
tl::unexpected<Error> cut_off() { return fail(Code::kCorrupt, "is cut off: its compressed data end too early"); }

// ---- gzip -----------------------------------------------------------------------------------------------------------

// What both directions have: zlib's pointers.
class Zlib {
 protected:
  void begin(const In& in, const Out& out) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));  // it does not write there
    stream_.avail_in = static_cast<uInt>(std::min<std::size_t>(in.size(), UINT_MAX));
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(out.size(), UINT_MAX));
  }
  void end(In& in, Out& out) const {
    in = in.subspan(static_cast<std::size_t>(reinterpret_cast<const std::byte*>(stream_.next_in) - in.data()));
    out = out.subspan(static_cast<std::size_t>(reinterpret_cast<std::byte*>(stream_.next_out) - out.data()));
  }
  z_stream stream_{};
};

class GzipDecoder final : public StreamCodec, Zlib {
 public:
  GzipDecoder() {
    if (inflateInit2(&stream_, MAX_WBITS + kGzipWrapper) != Z_OK) throw std::bad_alloc();
  }
  ~GzipDecoder() override { inflateEnd(&stream_); }
  Result<bool> run(In& in, bool is_last, Out& out) override {
    while (!out.empty()) {
      if (has_ended_)  // what tapes fill their last block with
        while (!in.empty() && in.front() == std::byte{0}) in = in.subspan(1);
      if (in.empty() && (has_ended_ || !is_last)) return is_last;
      if (has_ended_) inflateReset(&stream_);
      begin(in, out);
      const std::size_t before = in.size();
      const int outcome = inflate(&stream_, Z_NO_FLUSH);
      end(in, out);
      has_ended_ = outcome == Z_STREAM_END;
      if (outcome == Z_BUF_ERROR && is_last && in.empty() && before == 0) return cut_off();
      if (outcome == Z_MEM_ERROR) throw std::bad_alloc();
      if (outcome != Z_OK && outcome != Z_STREAM_END && outcome != Z_BUF_ERROR)
        return damaged(stream_.msg == nullptr ? "it is no gzip" : stream_.msg);
    }
    return false;
  }

 private:
  bool has_ended_ = false;  // a member, and no other one has begun
};

class GzipEncoder final : public StreamCodec, Zlib {
 public:
  GzipEncoder() {
    if (deflateInit2(&stream_, kGzipLevel, Z_DEFLATED, MAX_WBITS + kGzipWrapper, kGzipMemory, Z_DEFAULT_STRATEGY) !=
        Z_OK)
      throw std::bad_alloc();
  }
  ~GzipEncoder() override { deflateEnd(&stream_); }
  Result<bool> run(In& in, bool is_last, Out& out) override {
    begin(in, out);
    const int outcome = deflate(&stream_, is_last ? Z_FINISH : Z_NO_FLUSH);
    end(in, out);
    PIF_ASSERT(outcome == Z_OK || outcome == Z_STREAM_END || outcome == Z_BUF_ERROR, outcome);
    return outcome == Z_STREAM_END;
  }
};

// ---- zstd -----------------------------------------------------------------------------------------------------------

// One call of f(&out, &in), as zstd has it.
template <typename F>
std::size_t zstd_call(In& in, Out& out, const F& f) {
  ZSTD_inBuffer from{in.data(), in.size(), 0};
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  const std::size_t outcome = f(&to, &from);
  in = in.subspan(from.pos);
  out = out.subspan(to.pos);
  return outcome;
}

class ZstdDecoder final : public StreamCodec {
 public:
  Result<bool> run(In& in, bool is_last, Out& out) override {
    while (!out.empty()) {
      if (in.empty() && (has_ended_ || !is_last) && !is_full_) return is_last;
      if (in.empty() && !is_full_) return cut_off();
      const std::size_t outcome =
          zstd_call(in, out, [&](auto* to, auto* from) { return ZSTD_decompressStream(context_.get(), to, from); });
      if (ZSTD_isError(outcome)) return damaged(ZSTD_getErrorName(outcome));
      has_ended_ = outcome == 0;
      is_full_ = out.empty() && !has_ended_;
    }
    return false;
  }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, Free> context_{ZSTD_createDCtx()};
  bool has_ended_ = false;  // a frame, and no other one has begun
  bool is_full_ = false;    // it may have more to give
};

class ZstdEncoder final : public StreamCodec {
 public:
  ZstdEncoder() {
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kZstdLevel);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_nbWorkers, static_cast<int>(threads()));  // if it can
  }
  Result<bool> run(In& in, bool is_last, Out& out) override {
    const std::size_t outcome = zstd_call(in, out, [&](auto* to, auto* from) {
      return ZSTD_compressStream2(context_.get(), to, from, is_last ? ZSTD_e_end : ZSTD_e_continue);
    });
    if (ZSTD_isError(outcome)) return fail(Code::kInternal, ZSTD_getErrorName(outcome));
    return is_last && outcome == 0;
  }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> context_{ZSTD_createCCtx()};
};

// ---- xz -------------------------------------------------------------------------------------------------------------

class Xz : public StreamCodec {
 public:
  ~Xz() override { lzma_end(&stream_); }
  Result<bool> run(In& in, bool is_last, Out& out) override {
    stream_.next_in = reinterpret_cast<const std::uint8_t*>(in.data());
    stream_.avail_in = in.size();
    stream_.next_out = reinterpret_cast<std::uint8_t*>(out.data());
    stream_.avail_out = out.size();
    const lzma_ret outcome = lzma_code(&stream_, is_last ? LZMA_FINISH : LZMA_RUN);
    in = in.last(stream_.avail_in);
    out = out.last(stream_.avail_out);
    switch (outcome) {
      case LZMA_STREAM_END: return true;
      case LZMA_BUF_ERROR:
        if (is_last) return cut_off();
        [[fallthrough]];
      case LZMA_OK: return false;
      case LZMA_MEM_ERROR: throw std::bad_alloc();
      case LZMA_MEMLIMIT_ERROR:
        return fail(Code::kTooLarge, fmt::format("takes more than {} MiB to decompress", kXzMemoryMax >> 20));
      default: return damaged(outcome == LZMA_FORMAT_ERROR ? "it is no xz" : "its data do not fit their sums");
    }
  }

 protected:
  lzma_stream stream_ = LZMA_STREAM_INIT;
};

class XzDecoder final : public Xz {
 public:
  XzDecoder() {
    if (lzma_stream_decoder(&stream_, kXzMemoryMax, LZMA_CONCATENATED) != LZMA_OK) throw std::bad_alloc();
  }
};

class XzEncoder final : public Xz {
 public:
  XzEncoder() {
    lzma_mt options{};
    options.threads = threads();
    options.preset = kXzLevel;
    options.check = LZMA_CHECK_CRC64;
    if (lzma_stream_encoder_mt(&stream_, &options) != LZMA_OK) throw std::bad_alloc();
  }
};

}  // namespace

std::unique_ptr<StreamCodec> decoder_of(Compression kind) {
  PIF_ASSERT(kind != Compression::kNone);
  if (kind == Compression::kGzip) return std::make_unique<GzipDecoder>();
  if (kind == Compression::kZstd) return std::make_unique<ZstdDecoder>();
  return std::make_unique<XzDecoder>();
}

std::unique_ptr<StreamCodec> encoder_of(Compression kind) {
  PIF_ASSERT(kind != Compression::kNone);
  if (kind == Compression::kGzip) return std::make_unique<GzipEncoder>();
  if (kind == Compression::kZstd) return std::make_unique<ZstdEncoder>();
  return std::make_unique<XzEncoder>();
}

}  // namespace pif::cli
