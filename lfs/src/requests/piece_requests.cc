#include "requests/piece_requests.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/pattern/runs.h"

namespace pif::lfs {
namespace {

using patterns::ComponentRun;
using patterns::RunDecoder;

constexpr std::size_t kAtOnce = 512;               // pieces at most, between two looks at how much was read
constexpr std::uint64_t kScanBytesMax = 4u << 20;  // read for one request, whatever of it is asked for

Result<RunDecoder> decoder_of(std::span<const std::byte> runs) {
  return RunDecoder::make(runs, {kFileBytesMax, kFileBytesMax, UINT64_MAX});
}

// The pieces of runs, one after another, with their places in packed memory.
template <typename Extent, typename Byte>
class Pieces {
 public:
  Pieces(RunDecoder runs, std::span<Byte> memory) : runs_(runs), memory_(memory) { next_run(); }

  // The next ones, at most so many, as many as there is room and memory for; the last may be cut. Empty: no more.
  std::span<const Extent> next(std::size_t most = kAtOnce) {
    PIF_ASSERT(most > 0 && most <= kAtOnce, most);
    std::size_t count = 0;
    while (count < most && !memory_.empty() && run_) {
      const std::size_t size = std::min<std::uint64_t>(run_->length, memory_.size());
      extents_[count++] = {run_->offset, size, memory_.data()};
      memory_ = memory_.subspan(size);
      if (--run_->count == 0)
        next_run();
      else
        run_->offset += run_->stride;
    }
    return std::span(extents_).first(count);
  }
  // Of the memory: not given out yet.
  std::size_t left() const { return memory_.size(); }

 private:
  void next_run() { run_ = runs_.next(); }

  RunDecoder runs_;
  std::optional<ComponentRun> run_;
  std::span<Byte> memory_;
  std::array<Extent, kAtOnce> extents_;
};

Result<net::Packet> read_runs(const RunDecoder& runs, component::ExtentReader& reader, std::size_t bytes_max) {
  if (runs.payload() == 0) return fail(Code::kInvalid, "a read of no bytes");
  net::Packet reply;
  reply.body = net::Buffer(std::min<std::uint64_t>(runs.payload(), bytes_max));
  Pieces<component::ExtentRun, std::byte> pieces(runs, reply.body.span());
  while (reader.scanned() < kScanBytesMax) {
    // Each piece may have a chunk of its own.
    const std::uint64_t chunks = (kScanBytesMax - reader.scanned()) / reader.chunk_bytes();
    const auto some = pieces.next(std::clamp<std::uint64_t>(chunks, 1, kAtOnce));
    if (some.empty()) break;
    PIF_TRY(reader.read(some));
  }
  reply.body.shrink(reply.body.size() - pieces.left());
  PIF_ASSERT(!reply.body.empty(), runs.payload());
  reply.envelope.mutable_done();
  return reply;
}

}  // namespace

Status check_runs(std::span<const std::byte> runs, const RunLimits& limits) {
  PIF_TRY_VALUE(const RunDecoder decoder, RunDecoder::make(runs, {limits.end, limits.bytes, limits.pieces}));
  if (decoder.payload() == 0) return fail(Code::kInvalid, "a request for no bytes");
  if (!limits.is_exact || decoder.payload() == limits.bytes) return {};
  return fail(Code::kInvalid, fmt::format("pieces of {} bytes came with {} bytes", decoder.payload(), limits.bytes));
}

Status write_runs(component::File& file, std::span<const std::byte> runs, std::span<const std::byte> data, bool alone) {
  PIF_TRY_VALUE(const RunDecoder decoder, decoder_of(runs));
  Pieces<component::ConstExtent, const std::byte> pieces(decoder, data);
  for (auto some = pieces.next(); !some.empty(); some = pieces.next())
    PIF_TRY(component::write_extents(file, some, alone));
  return {};
}

Result<net::Packet> read_published(std::span<const std::byte> runs, const component::Reader& reader,
                                   std::size_t bytes_max, std::uint64_t& scanned) {
  PIF_TRY_VALUE(const RunDecoder decoder, decoder_of(runs));
  component::ExtentReader extents(reader);
  auto reply = read_runs(decoder, extents, bytes_max);
  scanned = extents.scanned();
  return reply;
}

Result<net::Packet> read_unsealed(std::span<const std::byte> runs, component::File* file, std::size_t bytes_max) {
  PIF_TRY_VALUE(const RunDecoder decoder, decoder_of(runs));
  if (file != nullptr) {
    component::ExtentReader extents(*file);
    return read_runs(decoder, extents, bytes_max);
  }
  if (decoder.payload() == 0) return fail(Code::kInvalid, "a read of no bytes");
  net::Packet reply;
  reply.body = net::Buffer(std::min<std::uint64_t>(decoder.payload(), bytes_max));
  std::memset(reply.body.data(), 0, reply.body.size());
  reply.envelope.mutable_done();
  return reply;
}

}  // namespace pif::lfs
